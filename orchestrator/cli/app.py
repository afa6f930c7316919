"""The `piste` application object; each command module adds its commands to it."""

from __future__ import annotations

from typing import Annotated

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


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"piste {version('piste')}")
        raise typer.Exit


@app.callback()
def piste(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Hold the options of the executable itself."""
    del version  # handled by its callback
