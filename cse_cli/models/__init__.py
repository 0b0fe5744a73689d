"""Models for commands: looked at, loaded, shared by processes."""
