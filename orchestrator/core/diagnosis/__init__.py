"""Find out why a dry run ended as it did, and say what helps: observations in, findings out."""
