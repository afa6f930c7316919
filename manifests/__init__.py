"""What was asked and what happened: documents, digests and encodings. Pure: no IO."""
