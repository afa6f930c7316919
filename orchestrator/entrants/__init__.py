"""An entrant's own runs: dry run, diagnosis, check."""
