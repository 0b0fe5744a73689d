"""``python -m cse_testkit RECIPE`` prints a table of its settings with sources to fill in."""

from __future__ import annotations

import sys

from cse_core.errors import CseError
from cse_testkit.installed import installed_registry
from cse_testkit.recipe_settings import skeleton

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("error: name one recipe: python -m cse_testkit RECIPE")
    try:
        print(skeleton(sys.argv[1], installed_registry()), end="")
    except CseError as error:
        sys.exit(f"error: {error.line()}")
