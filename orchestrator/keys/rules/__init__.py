"""Verify signatures and decide who can open what, as pure functions."""
