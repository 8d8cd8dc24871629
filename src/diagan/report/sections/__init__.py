"""The sections of the page: NAME.py has `NAME(c)`, and templates/NAME.html.j2 shows it."""
