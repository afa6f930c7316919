"""Pick up what a dead process left: finish its run or void it, and remove its parts.

An intent is written before an image is brought in and removed when the run's evidence is
complete. A run's lock tells whether its process lives; the kernel drops it when the process dies.
What happened to the run, the ledger alone says: parts at the engine are found by the run's name,
never by a label, which an image could carry too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from manifests.encoding import Json
from manifests.images import ImageIdentity
from manifests.outcomes import Diagnostic, Outcome
from manifests.statements import ImageRemoved, RunReserved, Statement
from orchestrator.engine.ports import ContainerEngine, EngineUnavailable
from orchestrator.images.remove_image import remove_unless_used
from orchestrator.images.resolve_image import ResolvedImage
from orchestrator.ledger.rules.run_states import Run, RunState, fold_runs
from orchestrator.runs.finish_run import remove_image, score_and_sign, void_run
from orchestrator.sandbox.parts import remove_leftovers
from orchestrator.support.reporter import Reporter
from orchestrator.workspace.workspace import Workspace

DIED = "the orchestrator died while the run was {state}; nothing of it is scored"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIntent:
    """A run under way: at which engine, and which ids its image may get that were not there."""

    run_id: str
    brought_in: tuple[str, ...]
    engine: str | None = None
    """The engine's own id and data root; None where it is not known."""

    @classmethod
    def begun(cls, run_id: str, *, engine: ContainerEngine) -> RunIntent:
        """Note a run whose image is not known yet."""
        return cls(run_id=run_id, brought_in=(), engine=engine_name(engine))

    @classmethod
    def of(cls, run_id: str, image: ResolvedImage, *, engine: ContainerEngine) -> RunIntent:
        """Note the ids that the image may get and that the engine does not know yet."""
        new = tuple(each for each in image.likely_ids if engine.inspect_image(each) is None)
        return cls(run_id=run_id, brought_in=new, engine=engine_name(engine))

    @classmethod
    def parse(cls, run_id: str, document: Mapping[str, Json]) -> RunIntent:
        """Read an intent back; a damaged one names no image."""
        ids = document.get("brought_in")
        known = [each for each in ids if isinstance(each, str)] if isinstance(ids, list) else []
        engine = document.get("engine")
        return cls(
            run_id=run_id,
            brought_in=tuple(known),
            engine=engine if isinstance(engine, str) else None,
        )

    def document(self) -> dict[str, Json]:
        """Return the intent as it is stored."""
        return {"brought_in": list(self.brought_in), "engine": self.engine}


def engine_name(engine: ContainerEngine) -> str:
    """Return what tells one engine from another, also where two share a machine's id."""
    description = engine.describe()
    return f"{description.engine_id} at {description.data_root}"


@dataclass(frozen=True, slots=True)
class _Facts:
    run: Run | None
    identity: ImageIdentity | None
    removed: bool


def remember_run(workspace: Workspace, intent: RunIntent) -> None:
    """Record what is about to be brought in, before it is."""
    workspace.store.write_intent(intent.run_id, intent.document())


def forget_run(workspace: Workspace, run_id: str) -> None:
    """Say that nothing of the run is left to do."""
    workspace.store.remove_intent(run_id)


def abandoned_runs(workspace: Workspace) -> tuple[RunIntent, ...]:
    """Return the intents whose process is gone."""
    return tuple(
        RunIntent.parse(name, document)
        for name, document in sorted(workspace.store.intents().items())
        if not workspace.store.is_run_alive(name)
    )


def recover_runs(
    workspace: Workspace, engine: ContainerEngine, reporter: Reporter
) -> tuple[str, ...]:
    """Settle every abandoned run; return their ids.

    A run of another engine is voided where it is unfinished; its parts wait for that engine.

    Raises:
        EngineUnavailable: their parts cannot be removed now; the ledger is settled all the same.

    """
    settled = []
    for intent in abandoned_runs(workspace):
        with workspace.store.lock_run(intent.run_id):
            elsewhere = _is_elsewhere(workspace, engine, intent)
            if not elsewhere:
                settle_run(workspace, engine, intent, reporter=reporter)
        if elsewhere:
            reporter.warn(
                f"run {intent.run_id} ran on the engine {intent.engine}; its containers and "
                "volumes wait there: point DOCKER_HOST at it, then: piste runs reap"
            )
            continue
        reporter.note(f"run {intent.run_id} was picked up after its process had died")
        settled.append(intent.run_id)
    return tuple(settled)


def _is_elsewhere(workspace: Workspace, engine: ContainerEngine, intent: RunIntent) -> bool:
    """Void an unfinished run, which needs no engine; tell whether another engine has its parts."""
    facts = _facts(workspace, intent.run_id)
    if facts.run is not None:
        _void_unfinished(workspace, facts.run, None, (Diagnostic.ORCHESTRATOR_DIED,))
    return intent.engine is not None and intent.engine != engine_name(engine)


def settle_run(
    workspace: Workspace,
    engine: ContainerEngine,
    intent: RunIntent,
    *,
    reporter: Reporter,
    reason: str | None = None,
    diagnostics: tuple[Diagnostic, ...] = (Diagnostic.ORCHESTRATOR_DIED,),
) -> None:
    """Void an unfinished run, remove its parts and its image, score and sign what is finished.

    The ledger comes first: it needs no engine. Every step may be done again.
    """
    run_id = intent.run_id
    facts = _facts(workspace, run_id)
    if facts.run is not None:
        _void_unfinished(workspace, facts.run, reason, diagnostics)
    left = remove_leftovers(engine, run_id)
    if left:
        raise EngineUnavailable(
            f"run {run_id}: the engine does not remove {', '.join(left)}; restart it, then: "
            "piste runs reap"
        )
    _remove_image(workspace, engine, intent, facts, reporter)
    if facts.run is not None:
        score_and_sign(workspace, run_id, reporter=reporter)
    forget_run(workspace, run_id)


def _facts(workspace: Workspace, run_id: str) -> _Facts:
    statements: list[Statement] = [e.statement for e in workspace.ledger.entries(run_id=run_id)]
    identity = next((s.image for s in statements if isinstance(s, RunReserved)), None)
    removed = any(isinstance(s, ImageRemoved) and s.gone for s in statements)
    return _Facts(fold_runs(statements).get(run_id), identity, removed)


def _void_unfinished(
    workspace: Workspace, run: Run, reason: str | None, diagnostics: tuple[Diagnostic, ...]
) -> None:
    failed = run.state is RunState.FINISHED and run.outcome is Outcome.PLATFORM_FAULT
    if run.open:
        reason = reason or DIED.format(state=run.state)
    elif failed:
        reason = "our side failed, as the run's own end says"
    else:
        return
    void_run(workspace, run.run_id, reason=reason, diagnostics=diagnostics)


def _remove_image(
    workspace: Workspace,
    engine: ContainerEngine,
    intent: RunIntent,
    facts: _Facts,
    reporter: Reporter,
) -> None:
    if facts.identity is None:
        for image_id in intent.brought_in:
            remove_unless_used(engine, image_id)
    elif not facts.removed:
        remove_image(workspace, intent.run_id, facts.identity, engine=engine, reporter=reporter)
