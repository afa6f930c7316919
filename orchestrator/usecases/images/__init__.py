"""Identify, bring in, build and remove images."""
