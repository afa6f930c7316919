"""Make, open and look after a workspace and its keys."""
