from tests.fixtures.command_line import cse as cse_command

__all__ = ["cse_command"]
