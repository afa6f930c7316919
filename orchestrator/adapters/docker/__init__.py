"""The Docker engine, its simulator, registries and images."""
