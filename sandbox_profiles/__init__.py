"""The sandbox's limits as typed data, and the seccomp allow-list."""
