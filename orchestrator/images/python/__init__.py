"""Images made of this machine's own Python."""
