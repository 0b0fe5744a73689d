"""A training step.

In: a checked composition, the rows of a round, and which rows a step takes. ``assembly.build``
makes the parts once; ``step.Engine`` runs the passes that the plan shows, the objective, the
gradients' way back and the commits, in the one order that docs/lifecycle.md has.
Out: moved weights, and a ``StepResult`` of tensors that nobody waited for.
"""
