"""Tar archives, built and read as plain bytes."""
