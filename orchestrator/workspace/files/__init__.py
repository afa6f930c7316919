"""The workspace on a local disk."""
