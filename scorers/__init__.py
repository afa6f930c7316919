"""The three exams. Arrays and plain values in, score cards out; no IO, no Docker."""
