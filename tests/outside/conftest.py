"""The packages below have tests of their own: test_outside.py runs them once installed."""

collect_ignore_glob = ["*/tests/*"]
