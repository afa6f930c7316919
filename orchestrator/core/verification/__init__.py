"""What an auditor checks, as pure functions: bytes and digests in, findings out.

Each topic has its module; `catalogue` numbers the checks, and README, output and code use its
numbers.
"""
