"""The `piste` application object; each command module adds its commands to it."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="piste",
    help=(
        "Certified runs for sealed sign-language benchmarks.\n\n"
        "Organizers seal an edition and certify images on it, entrants dry-run theirs under the "
        "same conditions, auditors check what was published."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=(
        "Exit codes: 0 it holds; 1 it ran and does not hold; 2 usage or a malformed file; "
        "3 refused by policy, nothing spent; 4 our side failed, any run refunded."
    ),
)
