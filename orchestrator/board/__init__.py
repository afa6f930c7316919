"""The board of an edition: rows, ties, submissions, reviews."""
