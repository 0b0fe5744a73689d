"""From words of the command line to settings, and what options are in help."""
