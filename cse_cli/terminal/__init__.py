"""What is printed and shown: results, errors, progress."""
