"""From a recipe and the command line to a checked composition; imports no torch."""
