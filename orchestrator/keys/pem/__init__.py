"""Signing keys as PEM files."""
