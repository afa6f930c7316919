"""`piste keys`: show and rotate signing keys, and say who opens what is sealed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace

if TYPE_CHECKING:
    from orchestrator.keys.rules.recipients import SealingPlan
    from orchestrator.workspace.show_keys import KeyReport

PANEL = "Organizers"
keys = typer.Typer(
    help=(
        "Show and rotate the keys, and say who opens what is sealed.\n\n"
        "Private keys lie in the workspace's keys/ folder, mode 0600. To bring in another "
        "person's age identity, put the file there: every clips*.agekey is tried on clips, every "
        "labels*.agekey on labels, as labels-b.agekey for the second of two. A host that lacks a "
        "file does without: a run host needs no labels*.agekey and no scorer.pem."
    ),
    invoke_without_command=True,
)
recipients = typer.Typer(
    help="Say who opens the clips and the labels of the next edition.", no_args_is_help=True
)
keys.add_typer(recipients, name="recipients")
app.add_typer(keys, name="keys", rich_help_panel=PANEL)

Role = Literal["run", "scorer", "log"]
Rule = Literal["any-of", "two-person"]


@keys.callback()
def keys_callback(
    context: typer.Context, workspace: Workspace = CURRENT_FOLDER, as_json: AsJson = False
) -> None:
    """List the keys when no command is named."""
    if context.invoked_subcommand is None:
        _list(workspace, as_json=as_json)
        return
    for name in ("workspace", "as_json"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"write --workspace and --json behind {context.invoked_subcommand}, not before it"
            )


@keys.command("list")
def keys_list(workspace: Workspace = CURRENT_FOLDER, as_json: AsJson = False) -> None:
    """Show roles, key ids, since when they sign, which are here, and the recipients."""
    _list(workspace, as_json=as_json)


@keys.command("rotate")
def keys_rotate(
    role: Annotated[Role, typer.Argument(help="run, scorer or log.", show_default=False)],
    reason: Annotated[str, typer.Option(help="Why; it is published in the log.")],
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Replace a signing key: the old one signs that, and its private half is destroyed."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.wiring.keys import rotate

    rotated = rotate(workspace, role, reason=reason)
    if as_json:
        print_json(
            {
                "role": role,
                "sequence": rotated.sequence,
                "old_key_id": rotated.old.key_id,
                "new_key": rotated.new.model_dump(mode="json"),
                "reason": rotated.reason,
            }
        )
        return
    say(f"{role} key rotated by statement {rotated.sequence}")
    say(f"  old {rotated.old.key_id}, its private half is destroyed")
    say(f"  new {rotated.new.key_id}")
    say(
        f"Publish the new id. Back up keys/{role}.pem and copy it to every host that signs with it."
    )


@recipients.command("set")
def recipients_set(
    labels: Annotated[
        bool, typer.Option("--labels/--clips", help="Whose recipients.", show_default=False)
    ],
    rule: Annotated[
        Rule,
        typer.Argument(
            metavar="RULE",
            help="any-of: any one of them opens. two-person: both are needed.",
            show_default=False,
        ),
    ],
    people: Annotated[
        list[str], typer.Argument(metavar="RECIPIENT...", help="age1…", show_default=False)
    ],
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Set the age recipients of the next edition's labels or clips.

    two-person encrypts to the first, then to the second: `age -d` twice, in the other order, opens
    it. Editions that are sealed keep their recipients.
    """
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.keys.sealing_port import Purpose
    from orchestrator.wiring.workspaces import open_workspace
    from orchestrator.workspace.set_recipients import (
        OpeningRule,
        RecipientTools,
        set_recipients,
    )

    opened = open_workspace(workspace)
    purpose = Purpose.LABELS if labels else Purpose.CLIPS
    tools = RecipientTools(store=opened.store, keyring=opened.keyring, sealer=opened.sealer)
    plan = set_recipients(purpose, OpeningRule(rule), people, tools=tools)
    if as_json:
        print_json({"purpose": purpose.value, "layers": [list(layer) for layer in plan.layers]})
        return
    say(f"{purpose} of the next edition:")
    _say_plan(plan)


def _list(workspace: Path, *, as_json: bool) -> None:
    from orchestrator.cli.views.console import print_json
    from orchestrator.wiring.workspaces import open_workspace
    from orchestrator.workspace.show_keys import show_keys

    opened = open_workspace(workspace)
    report = show_keys(ledger=opened.ledger, signing=opened.signing, keyring=opened.keyring)
    if as_json:
        print_json(_document(report))
    else:
        _say_report(report)


def _document(report: KeyReport) -> dict[str, object]:
    return {
        "origin": report.origin,
        "log_verifier": report.log_verifier,
        "signing": [
            row.key.model_dump(mode="json")
            | {"since": row.since, "until": row.until, "held": row.held}
            for row in report.signing
        ],
        "sealing": {
            row.purpose.value: {
                "layers": [list(layer) for layer in row.plan.layers],
                "identity_files": list(row.identity_files),
            }
            for row in report.sealing
        },
    }


def _say_report(report: KeyReport) -> None:
    from orchestrator.cli.views.console import say

    say(f"log {report.origin}")
    say(f"{'role':<8}{'algorithm':<12}{'signs':<14}{'here':<6}key id (SHA-256 of the public key)")
    for row in report.signing:
        span = f"{row.since} on" if row.until is None else f"{row.since} to {row.until}"
        here = "yes" if row.held else "no"
        say(f"{row.key.role:<8}{row.key.algorithm:<12}{span:<14}{here:<6}{row.key.key_id}")
    say(f"verifier of the log's notes: {report.log_verifier}")
    for sealing in report.sealing:
        files = ", ".join(sealing.identity_files) or "none: this host cannot open them"
        say(f"{sealing.purpose} of the next edition; identities here: {files}")
        _say_plan(sealing.plan)


def _say_plan(plan: SealingPlan) -> None:
    from orchestrator.cli.views.console import say

    for number, layer in enumerate(plan.layers, start=1):
        who = f"person {number} of {len(plan.layers)}" if len(plan.layers) > 1 else "opened by"
        say(f"  {who}{', any one of' if len(layer) > 1 else ''}")
        for recipient in layer:
            say(f"    {recipient}")
