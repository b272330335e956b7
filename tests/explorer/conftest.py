from tests.reading.conftest import here, trained

__all__ = ["here", "trained"]
