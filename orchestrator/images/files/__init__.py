"""Image archives on disk."""
