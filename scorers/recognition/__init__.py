"""Recognition (Épée 200)."""
