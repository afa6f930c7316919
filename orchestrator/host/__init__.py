"""The host of runs: what `doctor` examines."""
