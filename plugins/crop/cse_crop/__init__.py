"""Two spans of one text as its views."""
