"""Image archives, configurations and names, as pure functions."""
