"""Find out why a dry run ended as it did, and say what helps: observations in, findings out."""

from orchestrator.core.diagnosis.findings import Cause, Certainty, Finding
from orchestrator.core.diagnosis.observations import Observation
from orchestrator.core.diagnosis.ranking import diagnose

__all__ = ["Cause", "Certainty", "Finding", "Observation", "diagnose"]
