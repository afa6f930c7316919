"""Exported evidence as bytes."""
