"""Certified runs: executed, recorded, recovered, scored and replayed."""
