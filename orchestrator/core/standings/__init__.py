"""From retained predictions to figures, and from figures to a board."""
