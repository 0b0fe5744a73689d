"""Speed, memory and start-up, each beside a named peer in the same run.

    python -m tests.benchmarks             everything, and docs/performance.md
    python -m tests.benchmarks training    one of them

What is measured and what is aimed at is in `report.py`.
"""

import os

# Before the first import of what reads them. Everything here is made on the spot or installed, and
# nothing that an earlier run left may help.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("CSE_CACHE", "off")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
