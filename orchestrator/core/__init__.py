"""Pure rules: ledger folds, proofs, container options, outcome classification."""
