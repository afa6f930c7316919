"""From kept files to a scorer, and from its figures back to a card."""
