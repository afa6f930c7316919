"""What a container is asked for, how it is checked, watched, probed and judged."""
