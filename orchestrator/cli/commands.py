"""Which modules hold commands, in the order in which --help lists them."""

from __future__ import annotations

from importlib import import_module

COMMAND_MODULES = (
    "organizer",
    "certification",
    "doctoring",
    "labels",
    "standings",
    "revealing",
    "keys",
    "log_commands",
    "building",
    "dry_running",
    "starting",
    "checking",
    "auditing",
    "scoring",
    "segmenting",
)
"""Modules of this package; each adds its commands to the app when it is imported."""


def load_commands() -> None:
    """Import every command module. What a command needs is imported when it runs."""
    for name in COMMAND_MODULES:
        import_module(f"orchestrator.cli.{name}")
