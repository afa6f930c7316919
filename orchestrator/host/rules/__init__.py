"""What `doctor` finds, as pure functions."""
