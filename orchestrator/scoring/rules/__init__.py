"""Documents in, score cards out, as pure functions."""
