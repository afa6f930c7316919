"""Evidence as folders and tars on disk."""
