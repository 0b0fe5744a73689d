"""What a study will run: every point composed and named before anything starts."""
