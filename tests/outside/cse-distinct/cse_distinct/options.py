"""Options of the store."""

from __future__ import annotations

from pydantic import Field

from cse_core.options import StoreOptions


class DistinctOptions(StoreOptions):
    """Options of ``distinct``."""

    size: int = Field(default=65536, ge=1)
    """Vectors that it keeps."""
    threshold: float = Field(default=0.95, gt=0, le=1)
    """Cosine above which two vectors are near-duplicates, of which it keeps the newer one."""
