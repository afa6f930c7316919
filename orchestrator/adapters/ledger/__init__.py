"""The ledger in SQL and in memory."""
