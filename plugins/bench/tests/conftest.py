from tests.core.conftest import encoder

__all__ = ["encoder"]
