from __future__ import annotations

from tests.fixtures.command_line import cse

__all__ = ["cse"]
