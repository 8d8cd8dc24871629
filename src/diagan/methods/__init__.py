"""One small file for each thing that changes the GAN game; each fills slots of `game.Parts`."""
