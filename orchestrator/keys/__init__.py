"""Keys: who signs, who can open what is sealed, and where the secrets lie."""
