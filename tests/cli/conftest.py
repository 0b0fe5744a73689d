from tests.core.conftest import encoder, folder

__all__ = ["encoder", "folder"]
