"""Seal, open, extend and reveal editions; make samples."""
