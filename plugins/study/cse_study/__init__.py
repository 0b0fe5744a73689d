"""Studies: many runs that answer one question, from a TOML file."""
