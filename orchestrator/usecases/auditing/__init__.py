"""Verify and export evidence."""
