"""One execution of an image in the sandbox: the same for certified runs and dry runs."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Final

from manifests.errors import PlatformFault
from orchestrator.engine.ports import (
    ContainerEngine,
    EngineUnavailable,
    StartRefused,
)
from orchestrator.sandbox.entrant_container import (
    CreatedEntrant,
    audit_entrant,
    create_entrant,
)
from orchestrator.sandbox.parts import (
    Holder,
    PartNames,
    holder_is_alive,
    input_has_changed,
    remove_parts,
    start_holder,
)
from orchestrator.sandbox.read_ahead import read_ahead
from orchestrator.sandbox.request import (
    SandboxRequest,
    SandboxResult,
    StartFacts,
)
from orchestrator.sandbox.rules.collector import (
    CollectedFiles,
    OutputRules,
    OutputViolation,
    collect_output,
)
from orchestrator.sandbox.rules.container_options import INPUT, OUTPUT
from orchestrator.sandbox.rules.outcome import judge, start_failure
from orchestrator.sandbox.watch import Watch
from orchestrator.support.clock import Clock
from orchestrator.support.interruption import (
    raise_if_interrupted,
    termination_as_error,
    termination_ignored,
)
from orchestrator.support.reporter import Reporter, Step

_LOOK_S: Final = 0.5
"""How often progress is told and use is measured."""

_FIRST_LOOK_S: Final = 0.1
"""When it is measured first: a short run would end unmeasured."""

_KILL_S: Final = 15.0
"""How long a killed container may take to be gone."""


class _Execution:
    """Carries one request through its steps; every engine error after the start becomes a fact."""

    def __init__(
        self, engine: ContainerEngine, clock: Clock, reporter: Reporter, request: SandboxRequest
    ) -> None:
        self.engine = engine
        self.clock = clock
        self.reporter = reporter
        self.request = request
        self.names = PartNames.of(request.run_id, request.suffix)
        self.watch = Watch()

    def provide(self) -> tuple[Holder, CreatedEntrant]:
        """Create both containers, then fill the input volume.

        A container holds its image at the engine against whoever removes it: the entrant's is
        there before the clips, which may take a while. The first ones are decrypted meanwhile.
        """
        request = self.request
        with read_ahead(request.input_members()) as chunks:
            self.reporter.step(Step.CREATE)
            holder = start_holder(
                self.engine,
                self.names,
                request.profile,
                run_id=request.run_id,
                platform=request.platform,
                input_bytes=request.input_bytes,
                input_files=len(request.input_sums),
            )
            created = create_entrant(self.engine, self.names, request)
            self.reporter.step(Step.PROVIDE)
            # Nothing but the engine's memory volume ever holds the plaintext.
            self.engine.put_archive(holder.container_id, INPUT, chunks)
        return holder, created

    def run(self, container: str) -> None:
        """Start, watch, kill at the deadline, and learn how it ended."""
        self.reporter.step(Step.RUN)
        begin = self.clock.monotonic()
        try:
            self.engine.start_container(container)
        except StartRefused as error:
            self.watch.start = start_failure(error.engine_message)
            self.watch.engine_message = error.engine_message
            return
        if self.request.observer is not None:
            self.request.observer.started(container)
        follower = self._follow_log(container)
        ended = self._wait(container, begin)
        if not ended:
            self.watch.deadline_fired = True
            self.engine.kill_container(container)
            ended = self.engine.wait_for_exit(container, _KILL_S)
        self.watch.elapsed_s = self.clock.monotonic() - begin
        if not ended:
            raise EngineUnavailable("the engine did not end a killed container; restart it")
        if follower is not None:
            follower.join(_KILL_S)

    def _wait(self, container: str, begin: float) -> bool:
        deadline_s = float(self.request.profile.deadline_s)
        while (elapsed := self.clock.monotonic() - begin) < deadline_s:
            raise_if_interrupted()
            self.reporter.progress(Step.RUN, elapsed, deadline_s, "s")
            pause_s = min(_LOOK_S, max(_FIRST_LOOK_S, elapsed), deadline_s - elapsed)
            if self.engine.wait_for_exit(container, pause_s):
                return True
            self._measure(container)
        return False

    def _measure(self, container: str) -> None:
        sample = self.engine.sample_usage(container)
        if sample is None:
            return
        self.watch.usage = self.watch.usage.raised_to(sample)
        if self.request.observer is not None:
            self.request.observer.usage(sample)

    def _follow_log(self, container: str) -> threading.Thread | None:
        observer = self.request.observer
        if observer is None:
            return None

        def follow() -> None:
            try:
                for piece in self.engine.follow_log(container):
                    observer.log(piece)
            except PlatformFault:
                return  # the run's own calls notice a lost engine

        thread = threading.Thread(target=follow, name="log-follower", daemon=True)
        thread.start()
        return thread

    def learn(self, container: str) -> None:
        """Read exit code, memory flag and log, then remove the container."""
        self.reporter.step(Step.CLASSIFY)
        inspected = self.engine.inspect_container(container)
        if inspected is not None and self.watch.start is None:
            self.watch.exit_code = int(inspected["State"]["ExitCode"])
            self.watch.out_of_memory = self.engine.saw_oom(container)
        self.watch.log = self.engine.read_log(container, self.request.profile.log_bytes)
        self.engine.remove_container(container)

    def collect(self, holder: Holder) -> None:
        """Take the output from the holder, now that nobody writes to it."""
        self.reporter.step(Step.COLLECT)
        profile = self.request.profile
        rules = OutputRules(
            total_bytes=profile.output_bytes,
            file_bytes=profile.output_file_bytes,
            files=profile.output_files,
            allow_pose=self.request.allow_pose,
        )
        chunks = self.engine.get_archive(holder.container_id, OUTPUT)
        self.watch.output = collect_output(chunks, rules)

    def recheck(self, holder: Holder) -> None:
        """See that holder, input and GPU are still what they were."""
        self.reporter.step(Step.RECHECK)
        container, sums = holder.container_id, self.request.input_sums
        self.watch.input_changed = input_has_changed(self.engine, container, sums)
        if self.request.gpu_is_lost is not None:
            self.watch.gpu_lost = self.request.gpu_is_lost()
        self.watch.holder_lost = not holder_is_alive(self.engine, holder)

    def observe_run(self, container: str, holder: Holder) -> None:
        """Do everything after the point of no return; our side's failures become facts."""
        try:
            self.run(container)
            self.learn(container)
            if not holder_is_alive(self.engine, holder):
                self.watch.holder_lost = True
                return
            self.collect(holder)
            self.recheck(holder)
        except EngineUnavailable:
            self.watch.engine_lost = True
        except PlatformFault as error:
            self.watch.engine_error = True
            self.watch.engine_message = getattr(error, "engine_message", str(error))

    def result(self, start: StartFacts) -> SandboxResult:
        facts = self.watch.facts(self.request.profile)
        outcome, diagnostics = judge(facts)
        output = facts.output
        return SandboxResult(
            facts=facts,
            outcome=outcome,
            diagnostics=diagnostics,
            files=output.files if isinstance(output, CollectedFiles) else {},
            violation=output if isinstance(output, OutputViolation) else None,
            log=self.watch.log,
            effective=start.effective,
            container_id=start.container_id,
            usage=self.watch.usage,
            elapsed_s=self.watch.elapsed_s,
            engine_message=self.watch.engine_message,
        )

    def execute(self) -> SandboxResult:
        """Go through all steps."""
        holder, created = self.provide()
        self.reporter.step(Step.AUDIT)
        start = audit_entrant(self.engine, created, holder, profile=self.request.profile)
        self.reporter.step(Step.START)
        self.request.before_start(start)
        self.observe_run(start.container_id, holder)
        return self.result(start)


def run_in_sandbox(
    engine: ContainerEngine, clock: Clock, reporter: Reporter, *, request: SandboxRequest
) -> SandboxResult:
    """Run an image once and judge how it ended; leave nothing behind at the engine.

    After `before_start` has returned, a lost engine or holder is an outcome and no exception.

    Raises:
        RefusedByPolicy: for an image that cannot be run safely, or a container that differs.
        PlatformFault: when our side fails before the start.
        Interrupted: on SIGINT, SIGTERM or SIGHUP, after everything was removed.

    """
    execution = _Execution(engine, clock, reporter, request)
    with termination_as_error():
        try:
            result = execution.execute()
        finally:
            with termination_ignored():
                leftovers = remove_parts(engine, execution.names)
    if leftovers:
        reporter.warn(f"could not be removed: {', '.join(leftovers)}; see `piste runs reap`")
    return replace(result, leftovers=leftovers)
