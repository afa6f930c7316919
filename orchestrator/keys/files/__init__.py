"""Secrets on disk and the passphrase that protects them."""
