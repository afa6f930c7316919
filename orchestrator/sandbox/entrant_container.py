"""The entrant's container before it starts: created as the profile asks, and compared with that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manifests.errors import RefusedByPolicy
from orchestrator.engine.ports import ContainerEngine
from orchestrator.images.rules.image_config import NeutralConfig, neutralise
from orchestrator.sandbox.parts import Holder, PartNames
from orchestrator.sandbox.request import SandboxRequest, StartFacts
from orchestrator.sandbox.rules.container_options import EntrantSpec, entrant_options
from orchestrator.sandbox.rules.effective import differences, effective_document
from sandbox_profiles.profile import SandboxProfile


class ConfigurationDiffers(RefusedByPolicy):
    """The engine made another container than was asked for; it was not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedEntrant:
    """A container that was not compared yet, and what was asked for."""

    container_id: str
    options: Mapping[str, Any]
    image: NeutralConfig


def create_entrant(
    engine: ContainerEngine, names: PartNames, request: SandboxRequest
) -> CreatedEntrant:
    """Create the container; it is not started. Raises RefusedByPolicy and PlatformFault."""
    image = neutralise(request.image_config)
    options = entrant_options(
        EntrantSpec(
            run_id=request.run_id,
            image_id=request.image_id,
            platform=request.platform,
            input_volume=names.input,
            output_volume=names.output,
            profile=request.profile,
            covered_volumes=image.covered_volumes,
            gpu=request.gpu,
        )
    )
    container = engine.create_container(names.entrant, options)
    return CreatedEntrant(container_id=container, options=options, image=image)


def audit_entrant(
    engine: ContainerEngine, created: CreatedEntrant, holder: Holder, *, profile: SandboxProfile
) -> StartFacts:
    """Compare what the engine made with what was asked; return what is known before the start.

    Raises:
        ConfigurationDiffers: with every difference.

    """
    inspected = engine.inspect_container(created.container_id) or {}
    found = differences(created.options, created.image, inspected)
    if found:
        raise ConfigurationDiffers(
            f"the engine's container is not the one that the profile {profile.name} asks for; "
            "it was not started: " + "; ".join(found)
        )
    effective = {
        **effective_document(inspected),
        "profile": profile.name,
        "profile_sha256": profile.sha256(),
        "memory_volumes_noswap": holder.noswap,
    }
    return StartFacts(container_id=created.container_id, effective=effective)
