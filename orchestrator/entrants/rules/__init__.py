"""Find out why a dry run ended as it did, as pure functions: observations in, findings out."""
