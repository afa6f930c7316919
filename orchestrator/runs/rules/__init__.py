"""Policy, verdict, record and comparison of runs, as pure functions."""
