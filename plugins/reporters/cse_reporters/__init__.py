"""Reporters of training runs: a table of the metrics, events of TensorBoard, trackers."""
