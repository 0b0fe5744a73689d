"""What is generated in .github/skills/cse/SKILL.md, the page for coding agents."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from cse_cli.main import run

PAGE = Path(__file__).parents[1] / ".github/skills/cse/SKILL.md"
_QUICKSTART = Path(__file__).with_name("quickstart.md")
COMMANDS = {
    "simcse --dry-run": "check a combination, print its plan",
    "data stats texts.txt": "look at texts",
    "simcse --data texts.txt --dev": "train on sentences; graded pairs select the checkpoint",
    "--recipe pairs": "train on labelled pairs",
    "simcse --help-all": "list every option of a run",
    "eval starter runs/mine": "compare two models",
    "encode runs/mine texts.txt": "texts to vectors, float32 [N, D]",
    "search runs/mine --data": "the texts nearest to a query",
    "index runs/mine notes": "index documents; then search without --data",
    "--resume": "resume a stopped run",
}
"""What commands of the quickstart contain, and what each is for."""
MISTAKES = (
    "train --recipe simsce",
    "train --learning_rate 3e-5",
    "train --train.batchsize 64",
    "train --loss bml --dry-run",
    "train --recipe simcse-supervised --dry-run",
    "train --resume runs/none",
)


def commands() -> str:
    """Return the commands, as the quickstart has them."""
    blocks = re.findall(r"```sh\n(.*?)```", _QUICKSTART.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("cse ")]
    picked = [next(line for line in lines if name in line) for name in COMMANDS]
    shown = (f"{line}  # {what}" for line, what in zip(picked, COMMANDS.values(), strict=True))
    return "```sh\n" + "\n".join(shown) + "\n```"


def mistakes() -> str:
    """Return the output of each mistake: the last of its errors."""
    lines = []
    for mistake in MISTAKES:
        printed = io.StringIO()
        with redirect_stderr(printed), redirect_stdout(io.StringIO()):
            run(shlex.split(mistake))
        lines.append(f"$ cse {mistake}\n{printed.getvalue().strip().splitlines()[-1]}")
    return "```text\n" + "\n".join(lines) + "\n```"
