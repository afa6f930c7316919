"""Evidence: export it, verify it, make receipts."""
