"""What suites and dev sets are; nothing here imports torch."""
