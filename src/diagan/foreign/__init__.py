"""Somebody else's records, models and images: the ways to a diagnosis without a run of ours."""
