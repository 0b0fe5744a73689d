from tests.fixtures.command_line import cse, sentences, starter_copy
from tests.fixtures.evaluation import encoder, write

__all__ = ["cse", "encoder", "sentences", "starter_copy", "write"]
