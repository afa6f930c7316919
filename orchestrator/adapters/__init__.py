"""The world: Docker, SQLite, age files, keys, clock, registry."""
