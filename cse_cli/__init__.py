"""The command line: it parses, resolves and prints, and leaves the work to ``cse_core``."""
