"""Encryption in the age format, through pyrage."""
