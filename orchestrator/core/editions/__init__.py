"""Sealed editions: clips, names, seal documents, profiles, samples."""
