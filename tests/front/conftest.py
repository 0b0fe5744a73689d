from tests.fixtures.command_line import cse as cse_command
from tests.fixtures.command_line import sentences

__all__ = ["cse_command", "sentences"]
