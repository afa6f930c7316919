"""Statistics that the exams share."""
