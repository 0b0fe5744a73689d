"""Texts encoded once and kept in an index; those nearest to a query, by vectors and by words."""
