"""Baseline entrants: programs that keep the container contract with nothing but Python itself.

Each module is one file that an image runs as its entrypoint, and is here to be read: it shows what
an entrant's program has to do. What it learned lies beside it as JSON.
"""
