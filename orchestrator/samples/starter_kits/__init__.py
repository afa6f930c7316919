"""Starter kits: what `piste new` copies. Plain files to be read, one folder a track.

`main.py` and `test_main.py` of each track are ordinary Python, held to the same checks as the rest.
"""
