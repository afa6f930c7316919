"""`predictions.jsonl` of the three tracks: strict in, canonical out (design, section 4)."""
