"""Statements, tree, proofs, quota and run states, as pure functions."""
