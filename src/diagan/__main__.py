from diagan.cli import main

main()
