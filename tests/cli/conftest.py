from tests.core.conftest import encoder, folder
from tests.fixtures.command_line import cse, sentences, starter_copy

__all__ = ["cse", "encoder", "folder", "sentences", "starter_copy"]
