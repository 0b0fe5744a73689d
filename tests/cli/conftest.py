from tests.conftest import folder
from tests.fixtures.encoders import encoder

__all__ = ["encoder", "folder"]
