"""Score what was retained, take submissions, show boards."""
