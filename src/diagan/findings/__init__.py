"""What is said of a diagnosis: the verdict, rare or junk, clusters, how far to trust the logits."""
