from tests.fixtures.encoders import encoder

__all__ = ["encoder"]
