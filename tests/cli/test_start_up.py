"""Commands that neither train nor encode stay light."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from cse_testkit import PluginSuite
from cse_testkit.plugins import TOOLKIT, heavy_imports
from cse_testkit.promises import plugins_of

from cse_cli.main import run
from cse_cli.plugins.installed import OWN_COMMANDS
from tests.fixtures.command_line import CSE, Cse, forked

HEAVY = ("torch", "transformers", "datasets", "scipy", "sklearn", "accelerate", "pandas")
LIGHT = (
    "--help", "--version", "list-plugins", "train --help", "bench --help", "eval --help",
    "train --dry-run --data {texts} --dev {pairs}",
    "train --dry-run --data {texts} --json --loss infonce --pool mean",
    "data list", "data stats {texts} --model starter",
)  # fmt: skip
LISTINGS = ("list-plugins", "list-plugins --json", "show-plugin mocose",
            "show-plugin mocose --json", "list-recipes", "list-recipes --json")  # fmt: skip
PLAIN = ("--help", "--version", *(words for words in LISTINGS if words.startswith("list")))
"""What needs no options: they, and pydantic, took two fifths of its time."""
TRAIN = ("train --recipe simcse --model starter --data {texts} --train.max_steps 1 "
         "--train.batch_size 2 --quiet --out {out}")  # fmt: skip
SCRIPT = """
import json, os, sys
from cse_cli.main import run
for words, names in json.loads(sys.argv[1]):
    if not os.fork():
        code = run(words)
        print(json.dumps([code, [n for n in names if n in sys.modules]]), file=sys.stderr)
        sys.stderr.flush()
        os._exit(0)
    os.wait()
"""


def loaded(asked: Mapping[str, list[str]], cwd: Path) -> dict[str, list[str]]:
    """Return which of some modules each command imports, in a process that has imported none."""
    given = [(words.split(), names) for words, names in asked.items()]
    command = [sys.executable, "-c", SCRIPT, json.dumps(given)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
    assert list(cwd.iterdir()) == [], "a command that only looks writes nothing"
    answers = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert [code for code, _ in answers] == [0] * len(asked), done.stderr
    return {words: found for words, (_, found) in zip(asked, answers, strict=True)}


def test_nothing_heavy_is_imported(sentences: Path, tmp_path: Path) -> None:
    """A listing imports what it prints with alone, the others no torch."""
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("sentence1\tsentence2\tscore\na b\ta c\t1\na d\tb c\t3\n")
    (empty := tmp_path / "empty").mkdir()
    own = [name for name in OWN_COMMANDS if " " not in name]
    modules = {name: f"cse_cli.commands.{name.replace('-', '_')}" for name in own}
    unused = [*modules.values(), "packaging", "rich._emoji_codes"]
    asked = defaultdict[str, list[str]](list)
    for words in LIGHT:
        asked[words.format(texts=sentences, pairs=pairs)] += HEAVY
    for words in LISTINGS:
        asked[words] += [*unused, *["rich"] * words.endswith("--json")]
    for words in PLAIN:
        asked[words] += ["pydantic", "cse_mocose.options"]
    wanted = {words: [modules[words.split()[0]]] if words in LISTINGS else [] for words in asked}
    assert loaded(asked, empty) == wanted


def test_a_run_imports_what_it_needs(sentences: Path, tmp_path: Path) -> None:
    words = TRAIN.format(texts=sentences, out=tmp_path / "run").split()
    assert forked(trains_without_pandas, words) == 0


def trains_without_pandas(words: list[str]) -> None:
    assert run(words) == 0
    loaded = {"pandas", "datasets", "sklearn", "sentence_transformers"} & {*sys.modules}
    assert not loaded, loaded


def test_no_distribution_imports_what_is_heavy_and_each_command_has_a_help(cse: Cse) -> None:
    """What ``conftest.py`` leaves out of the suite of each."""
    commands = plugins_of().commands.all
    infos = (*plugins_of().manager.infos, *(each.info for each in commands))
    names = {each.distribution for each in infos} - {TOOLKIT}
    suites = (type("Suite", (PluginSuite,), {"distribution": name}) for name in names)
    modules = {suite.distribution: suite().modules() for suite in suites}
    assert len(modules) > 30 and heavy_imports(modules) == ""
    for command in commands:
        assert cse(*command.name.split(), "--help").code == 0, command.name


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a boat near the harbour of the old town\n" * 2000)
    command = f"{CSE} data show t.txt --rows 2000 | head -1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "row 1\n"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
