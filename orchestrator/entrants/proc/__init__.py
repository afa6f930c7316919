"""A running container, seen through /proc."""
