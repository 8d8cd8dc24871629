"""Adapters to packages that are not dependencies."""
