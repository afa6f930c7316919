"""Signing keys, age identities and passphrases on disk."""
