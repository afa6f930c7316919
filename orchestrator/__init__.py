"""The orchestrator: one room a subject; docs/architecture.md says which."""
