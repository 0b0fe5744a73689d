"""The suites that this distribution brings."""

from cse_core.hookspecs import hookimpl
from cse_core.records import SuiteSpec


@hookimpl
def cse_suites() -> list[SuiteSpec]:
    """Return the suites, in the order in which ``cse data list`` shows them."""
    return [
        SuiteSpec(
            name="sts",
            summary="graded pairs: STS12-16, STS-B, SICK-R",
            factory="cse_evaluation.suites:Sts",
            dev="pairs",
            sources="cse_evaluation:sources/sts.toml",
        ),
        SuiteSpec(
            name="chinese",
            summary="graded pairs: C-STS-B, SimCLUE",
            factory="cse_evaluation.suites:Chinese",
            sources="cse_evaluation:sources/simclue.toml",
        ),
        SuiteSpec(
            name="transfer",
            summary="a linear classifier on MR, CR, SUBJ, MPQA, SST2, TREC, MRPC",
            factory="cse_evaluation.suites:Transfer",
            sources="cse_evaluation:sources/transfer.toml",
        ),
        SuiteSpec(
            name="classify",
            summary="a linear classifier on every labelled file of the folder",
            factory="cse_evaluation.suites:Classify",
            sources="cse_evaluation:sources/reviews.toml",
        ),
        SuiteSpec(
            name="collections",
            summary="judged queries: every test collection of the folder, as BEIR or TREC lay it",
            factory="cse_evaluation.suites:Collections",
            dev=True,
            sources="cse_evaluation:sources/collections.toml",
        ),
        SuiteSpec(
            name="retrieval",
            summary="documents that look for their titles",
            factory="cse_evaluation.suites:Retrieval",
            dev=True,
            sources="cse_evaluation:sources/docs.toml",
        ),
    ]
