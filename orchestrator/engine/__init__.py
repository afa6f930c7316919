"""The container engine: its port, and the engines behind it."""
