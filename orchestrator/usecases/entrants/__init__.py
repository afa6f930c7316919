"""Dry runs and their diagnosis, starter kits, checks, the doctor."""
