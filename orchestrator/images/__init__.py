"""Container images: name, read, bring in, build and remove them."""
