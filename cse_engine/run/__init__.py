"""A run: rounds, checkpoints, the chosen model.

In go a checked composition and the folder of a run (``run.train``, ``run.resume``); out come the
run's record, metrics and checkpoints in that folder, the saved model, and an ``Outcome``.
``TrainingLoop`` makes the steps of one round for whoever drives them: ``Trainer``, `cse bench`, the
test kit.
"""
