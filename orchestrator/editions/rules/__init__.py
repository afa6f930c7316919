"""Sealed clips, names, documents and profiles, as pure functions."""
