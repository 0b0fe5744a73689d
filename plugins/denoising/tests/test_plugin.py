"""Every promise that the kit asks of the distribution and its parts."""

from cse_testkit import part_suites

globals().update(
    part_suites(
        "cse-denoising",
        {"loss.reconstruction": {"variants": ({"decoder": "copy"}, {"decoder": "new"})}},
    )
)
