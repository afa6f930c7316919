"""Sample editions, baseline entrants and starter kits."""
