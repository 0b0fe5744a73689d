from tests.core.conftest import encoder
from tests.fixtures.command_line import cse

__all__ = ["cse", "encoder"]
