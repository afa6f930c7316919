"""`piste reveal`: open a closed edition's commitments to everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace

if TYPE_CHECKING:
    from manifests.statements import EditionRevealed


@app.command(rich_help_panel="Organizers")
def reveal(
    edition: Annotated[str, typer.Argument(help="An edition that is closed.")],
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Publish a closed edition's clip sums and labels, with their salts.

    They are written to the edition's revealed/ folder. The command prints what `sha256sum -c`
    checks there: the digests that were published before the first run.
    """
    from orchestrator.cli.views.console import print_json
    from orchestrator.cli.views.progress import shown_progress
    from orchestrator.editions.reveal import RevealTools, reveal_edition
    from orchestrator.wiring.workspaces import open_workspace

    opened = open_workspace(workspace)
    with shown_progress(quiet=as_json) as reporter:
        revealed = reveal_edition(
            edition,
            RevealTools(
                store=opened.store,
                ledger=opened.ledger,
                keyring=opened.keyring,
                clock=opened.clock,
                reporter=reporter,
            ),
        )
    if as_json:
        print_json(revealed.model_dump(mode="json"))
    else:
        _say(revealed)


def _say(revealed: EditionRevealed) -> None:
    from orchestrator.cli.views.console import note, say

    for name, digest in sorted(revealed.files.items()):
        say(f"{digest}  {name}")
    folder = f"editions/{revealed.edition}"
    note(f"revealed {revealed.edition}: {len(revealed.files)} files in {folder}/revealed/")
    note("Publish that folder beside seal.json, and the new checkpoint: piste log checkpoint")
    note(f"Anybody checks them with: piste verify {folder}")
    note("The clips stay sealed. To publish them too, open sealed/ with age and the clips identity")
