"""What images are: archives as hostile input, assembling, configuration."""
