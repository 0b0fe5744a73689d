from tests.fixtures.command_line import cse, sentences, starter_copy

__all__ = ["cse", "sentences", "starter_copy"]
