from tests.conftest import encoder

__all__ = ["encoder"]
