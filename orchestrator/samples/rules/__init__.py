"""Draw sample clips, as pure functions."""
