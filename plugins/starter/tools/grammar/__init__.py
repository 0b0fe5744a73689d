"""The seeded grammar that the starter texts were made by."""
