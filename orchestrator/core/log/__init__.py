"""The signed log: statements, tree, proofs, checkpoints, keys, rules."""
