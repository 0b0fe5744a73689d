"""``python -m tests.mutations [NAME ...]`` runs tests against the mutations of each table."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutations.tables import OWN, PLUGINS, ROOT, Mutation, mutations


def is_caught(mutation: Mutation) -> bool:
    """Return whether the owner's tests fail with the mutation in a copy of its package."""
    package = Path(mutation.file).parts[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(mutation.path.parents[len(Path(mutation.file).parts) - 1] / package,
                        folder / package)  # fmt: skip
        changed = folder / mutation.file
        changed.write_text(mutation.applied(changed.read_text("utf-8")), encoding="utf-8")
        if mutation.owner in OWN:
            # A checkout in which the changed package takes the place of the true one.
            for entry in ROOT.iterdir():
                if entry.name != package and not entry.name.startswith("."):
                    (folder / entry.name).symlink_to(entry)
            tests = folder / mutation.tests.relative_to(ROOT) / mutation.test
            return _fails(tests, folder, folder)
        tests = PLUGINS / mutation.owner / "tests"
        tried = [tests / mutation.test] if mutation.test else []
        return any(_fails(path, ROOT, folder) for path in [*tried, tests])


def _fails(tests: Path, root: Path, packages: Path) -> bool:
    """Return whether tests fail with the packages of a folder in front of the installed ones."""
    path = os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-m", "not slow and not gpu", str(tests)],
        cwd=root,
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
