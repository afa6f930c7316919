"""Samples on a local disk."""
