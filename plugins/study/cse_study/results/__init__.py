"""What came of a study: rows of runs, and the table of points with what can be said of them."""
