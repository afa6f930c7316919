"""Files on a local disk: whole or absent, locked, read with a bound."""
