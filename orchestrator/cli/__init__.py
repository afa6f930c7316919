"""The command line: parse, call one use case, render."""

from orchestrator.cli.main import main

__all__ = ["main"]
