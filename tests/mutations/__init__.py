"""Wrong values put into plugins on purpose, one at a time: a plugin's own tests must see each."""
