"""Translation (Signet)."""
