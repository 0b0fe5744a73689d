"""What every test of this repository shares."""

from __future__ import annotations

import os

# A test writes nothing into the user's cache; those of the cache name a folder of their own.
os.environ["CSE_CACHE"] = "off"
