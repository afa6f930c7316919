"""What an engine says of itself, read as pure functions."""
