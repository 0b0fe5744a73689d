"""Plugins of the toolkit's own wheel, registered by the entry points and hooks of any plugin."""
