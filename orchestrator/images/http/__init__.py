"""Registries, over HTTP."""
