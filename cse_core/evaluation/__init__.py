"""What suites and dev sets are, and how far vectors are spread; nothing here imports torch."""
