"""What holds for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is; a limit that matters is asserted on.
settings.register_profile("piste", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("piste")

pytest_plugins = (
    "tests.support.engine_fixtures",
    "tests.support.terminal_fixtures",
    "tests.support.workspace_fixtures",
)
