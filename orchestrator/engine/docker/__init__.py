"""The Docker engine behind the port."""
