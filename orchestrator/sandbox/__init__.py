"""Run one image in the sandbox, and show that the sandbox holds."""
