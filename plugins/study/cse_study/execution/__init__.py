"""Making the runs of a plan: each in a process of its own, once, resumed where it was stopped."""
