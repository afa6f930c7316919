"""The numbered checks and the form of bundles, as pure functions.

`catalogue` numbers the checks; documentation, output and code use its numbers.
"""
