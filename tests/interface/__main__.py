"""``python -m tests.interface`` writes the present interface to ``interface.json``."""

from tests.interface.description import KEPT, described, written

if __name__ == "__main__":
    KEPT.write_text(written(described()), encoding="utf-8")
    print(KEPT.name)
