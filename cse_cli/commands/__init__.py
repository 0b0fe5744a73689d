"""The commands of the toolkit itself."""
