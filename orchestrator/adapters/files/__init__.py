"""Folders and files: workspaces, corpora, evidence, locks."""
