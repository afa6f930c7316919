"""What a container is asked for, and how it is compared, probed and judged, as pure functions."""
