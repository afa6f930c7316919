"""Certified runs from admission to evidence, recovery and replay."""
