"""The interface of plugins as data, kept beside the tests, so that a change of it is seen."""
