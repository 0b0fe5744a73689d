from tests.conftest import encoder, folder

__all__ = ["encoder", "folder"]
