"""Fold statements into rows and order them, as pure functions."""
