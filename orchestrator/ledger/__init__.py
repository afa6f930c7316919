"""The append-only log of signed statements: its rules, its proofs and its stores."""
