"""``python -m tests.mutations [PLUGIN ...]`` runs a plugin's tests against its mutations."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutations.tables import PLUGINS, ROOT, Mutation, mutations


def is_caught(mutation: Mutation) -> bool:
    """Return whether the plugin's tests fail with the mutation in a copy of its package."""
    source = PLUGINS / mutation.plugin
    tests = source / "tests"
    with tempfile.TemporaryDirectory() as folder:
        package = Path(mutation.file).parts[0]
        shutil.copytree(source / package, Path(folder) / package)
        changed = Path(folder) / mutation.file
        changed.write_text(mutation.applied(changed.read_text("utf-8")), encoding="utf-8")
        tried = [tests / mutation.test] if mutation.test else []
        return any(_fails(path, folder) for path in [*tried, tests])


def _fails(tests: Path, folder: str) -> bool:
    """Return whether tests fail with the packages of a folder in front of the installed ones."""
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(tests)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1, 2):  # 2: a mutation can stop tests from being collected
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.returncode != 0


def main(names: list[str]) -> int:
    """Run the mutations; return 1 where one that should be caught is not."""
    wrong = 0
    wanted = mutations(names)
    for number, mutation in enumerate(wanted, 1):
        caught = is_caught(mutation)
        wrong += caught == bool(mutation.argued)
        verdict = "caught" if caught else "NOT CAUGHT"
        if mutation.argued:
            verdict = "caught, though it is argued" if caught else f"argued: {mutation.argued}"
        print(f"{number}/{len(wanted)} {mutation.label}: {verdict}", flush=True)
    argued = sum(bool(mutation.argued) for mutation in wanted)
    print(f"{len(wanted)} mutations, {argued} argued, {wrong} not as the tables say")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
