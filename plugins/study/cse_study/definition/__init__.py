"""What a study is: its TOML file, read and checked, and the points that its axes make."""
