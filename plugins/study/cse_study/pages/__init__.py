"""What was run, seen: runs listed and compared, and pages with pictures of runs and studies."""
