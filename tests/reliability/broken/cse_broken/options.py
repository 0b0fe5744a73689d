"""The options of the broken parts."""

from cse_core.options import HeadOptions, LossOptions, MinerOptions


class WrongOptions(LossOptions):
    how: str = "complex"
    """What it does."""


class BentOptions(HeadOptions):
    how: str = "detaches"
    """What it does."""


class RoundsOptions(MinerOptions):
    how: str = "no-text"
    """What is wrong with its round."""
