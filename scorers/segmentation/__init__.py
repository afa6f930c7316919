"""Segmentation (consumer-aware)."""
