"""Editions: seal, open, extend and reveal them."""
