"""Paper-neutral parts, registered through the same hooks as anybody's."""
