"""A batch as the losses see it: a step is made, nothing is written, what it saw is kept."""
