"""The workspace folder: make it, open it, look after its keys and teams."""
