from tests.fixtures.evaluation import encoder, write

__all__ = ["encoder", "write"]
