"""From what is chosen to a composition, its plan, and a run."""
