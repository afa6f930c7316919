"""The orchestrator: rules, ports, use cases, adapters and the command line."""
