"""``cse inspect`` from beginning to end."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import Cse, refused
from tests.fixtures.tiny import sentences

WORK = (
    "--train.batch_size", "6", "--train.device", "cpu", "--set", "model.dropout=0",
    "--set", "data.shuffle=false",
)  # fmt: skip
QUEUE = ("--recipe", "esimcse", "--negatives.momentum-queue.size", "12")


@pytest.fixture
def data(tmp_path: Path) -> tuple[str, ...]:
    """Twelve sentences: row 3 is row 0 again, row 4 is row 1 in capitals, row 6 is row 0 again."""
    texts = sentences(12)
    texts[3] = texts[6] = texts[0]
    texts[4] = texts[1].upper()
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return ("--data", str(path))


def seen(cse: Cse, *words: str) -> dict[str, Any]:
    printed = cse("inspect", *words, "--json")
    assert (printed.code, printed.err) == (0, "")
    found: dict[str, Any] = json.loads(printed.out)
    return found


def articles(folder: Path) -> Path:
    """Write four articles of ten sentences each."""
    path, texts = folder / "articles.jsonl", sentences(40)
    with path.open("w") as out:
        for n in range(4):
            body = [["a", texts[10 * n : 10 * n + 10]]]
            out.write(json.dumps({"id": n, "title": f"t{n}", "sections": body}) + "\n")
    return path


def everything(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_batch_with_its_negatives_masks_and_sources(
    cse: Cse, encoder: str, data: tuple[str, ...], tmp_path: Path
) -> None:
    before = everything(tmp_path)
    found = seen(
        cse, *QUEUE, "--model", encoder, *data, *WORK, "--after", "1", "--rows", "3",
        "--columns", "50",
    )  # fmt: skip
    assert everything(tmp_path) == before
    assert (found["recipe"], found["step"], found["rows"]) == ("esimcse", 2, 6)
    texts = Path(data[1]).read_text().splitlines()
    assert {view["name"] for view in found["views"]} >= {"anchor", "positive"}
    assert all(len(view["rows"]) == 3 for view in found["views"])
    assert found["views"][0]["rows"][0]["read"].replace(" ", "").casefold().find(
        texts[6].replace(" ", "").casefold()[:10]
    ) >= 0  # fmt: skip
    (direction,) = found["losses"]["infonce"]["directions"]
    blocks = {block["source"]: block for block in direction["blocks"]}
    assert blocks["in-batch"]["columns"] == blocks["momentum-queue"]["columns"] == 6
    assert blocks["momentum-queue"]["age"] == 1 and "age" not in blocks["in-batch"]
    first = direction["shown"][0]
    assert (first["row"], first["text"]) == (6, texts[0])
    assert len(first["positives"]) == 1 and first["positives"][0]["weight"] == 1.0
    assert {(m["source"], m["row"], m["why"]) for m in first["masked"]} == {
        ("in-batch", 6, "its own sentence"),
        ("momentum-queue", 0, "the same text"),
        ("momentum-queue", 3, "the same text"),
    }
    assert first["negatives_seen"] == len(first["negatives"]) == 9
    cosines = [each["cosine"] for each in first["negatives"]]
    assert cosines == sorted(cosines, reverse=True)
    for each in first["negatives"]:
        assert each["text"] == texts[each["row"]]
    numbers = found["metrics"]
    assert numbers["infonce.same_text.masked"] == 2 and numbers["infonce.same_text.seen"] == 0
    assert numbers["infonce.negatives.momentum-queue.age"] == 1


def test_a_run_is_shown_as_its_checkpoint_left_it_and_stays_as_it_is(
    cse: Cse, encoder: str, data: tuple[str, ...], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    printed = cse(
        "train", *QUEUE, "--model", encoder, *data, *WORK, "--dev", "none",
        "--train.max_steps", "2", "--out", str(run), "-q",
    )  # fmt: skip
    assert printed.code == 0, printed.err
    before = everything(tmp_path)
    found = seen(cse, str(run), "--rows", "1", "--columns", "1")
    assert everything(tmp_path) == before
    assert found["step"] == 3
    (direction,) = found["losses"]["infonce"]["directions"]
    blocks = {block["source"]: block for block in direction["blocks"]}
    queue = blocks["momentum-queue"]
    assert queue["columns"] == 12 and 1 < queue["age"] < 2  # two steps, less what is masked
    assert queue["age"] == round(found["metrics"]["infonce.negatives.momentum-queue.age"], 4)
    (anchor,) = direction["shown"]
    assert len(anchor["negatives"]) == len(anchor["masked"]) == 1
    assert anchor["negatives_seen"] + anchor["masked_in_all"] == 6 + 12
    printed = cse("inspect", str(run), "--rows", "1", "--columns", "2")
    assert printed.code == 0, printed.err
    assert "negatives from momentum-queue: an anchor sees " in printed.out
    assert "masked (its own sentence): in-batch" in printed.out and " more" in printed.out
    assert len(printed.out.splitlines()) < 30


def test_both_directions_and_hard_negatives_are_shown(
    cse: Cse, encoder: str, tmp_path: Path
) -> None:
    texts = sentences(9)
    path = tmp_path / "triplets.tsv"
    rows = zip(texts[:3], texts[3:6], [texts[6], texts[0], texts[8]], strict=True)
    lines = ["text\tpositive\tnegative", *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    words = (
        "--recipe", "simcse-supervised", "--model", encoder, "--data", str(path), *WORK,
        "--loss.infonce.directions", "both", "--negatives.hard-negatives.weight", "0.5",
    )  # fmt: skip
    found = seen(cse, *words, "--columns", "10")
    there, back = found["losses"]["infonce"]["directions"]
    assert [block["source"] for block in there["blocks"]] == ["in-batch", "negative"]
    assert [block["source"] for block in back["blocks"]] == ["in-batch"]
    first = there["shown"][0]
    own = [each for each in first["negatives"] if each.get("log_weight")]
    assert [(each["source"], each["text"]) for each in own] == [("negative", texts[6])]
    # The second row's hard negative is the first row's own text, and stays a negative.
    assert all(each["why"] != "the same text" for each in first["masked"])
    assert back["shown"][0]["text"] == texts[3]
    assert {each["text"] for each in back["shown"][0]["negatives"]} == {texts[1], texts[2]}


def test_a_run_and_a_choice_exclude_each_other_and_no_run_is_said(cse: Cse, tmp_path: Path) -> None:
    refused(cse("inspect", str(tmp_path), "--recipe", "simcse"), "RUN", "leave out")
    refused(cse("inspect", str(tmp_path / "no")), "is not a run")
    assert cse("inspect", "--rows", "0").code == 2


def test_rounds_of_a_miner_are_shown_without_a_trace(
    cse: Cse, encoder: str, tmp_path: Path
) -> None:
    path = articles(tmp_path)
    before = everything(tmp_path)
    found = seen(
        cse, "--recipe", "inverse-cloze", "--model", encoder, "--data", str(path), *WORK,
        "--set", "model.max_length=48",
    )  # fmt: skip
    assert everything(tmp_path) == before
    assert found["round"] == 1 and found["losses"]
    (loss,) = found["losses"].values()
    assert all(anchor["text"] for anchor in loss["directions"][0]["shown"])


def test_texts_that_a_part_found_are_those_that_the_encoder_reads(
    cse: Cse, encoder: str, data: tuple[str, ...]
) -> None:
    found = seen(cse, "--recipe", "cards", "--model", encoder, *data, *WORK, "--columns", "20")
    (view,) = [view for view in found["views"] if view["role"] == "negative"]
    assert view["column"] is None
    (direction,) = found["losses"]["infonce"]["directions"]
    anchor = direction["shown"][0]
    each = [e for e in [*anchor["negatives"], *anchor["masked"]] if e["source"] == view["name"]]
    assert {view["rows"][0]["read"], view["rows"][1]["read"]} <= {e["text"] for e in each}


def test_lists_are_shown_by_their_own_texts(cse: Cse, encoder: str, tmp_path: Path) -> None:
    texts = sentences(24)
    rows = [{"text": texts[n], "positive": texts[n + 4 : n + 4 + n % 3],
             "negative": texts[n + 8 : n + 9 + n % 2]} for n in range(6)]  # fmt: skip
    path = tmp_path / "lists.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    lists = ("--views.positive.lists", "all", "--views.negative.lists", "all")
    short = ("--model.max_length", "16")
    given = ("--recipe", "pairs", "--model", encoder, *short, "--data", str(path), *lists, *WORK)
    (direction,) = seen(cse, *given, "--columns", "40")["losses"]["infonce"]["directions"]
    for anchor, row in zip(direction["shown"], rows, strict=False):
        found = [p.get("text") for p in anchor["positives"] if p["weight"]]
        assert found == row["positive"]
        others = {e["text"] for e in anchor["negatives"]}
        own = {*row["negative"], *(t for r in rows if r is not row for t in r["positive"])}
        assert others >= {*row["negative"]} and others <= own | {
            t for r in rows for t in r["negative"]
        }


def test_a_mined_positive_and_a_segment_are_shown_by_their_own_texts(
    cse: Cse, encoder: str, tmp_path: Path
) -> None:
    path, texts = articles(tmp_path), sentences(40)
    work = ("--model", encoder, "--data", str(path), *WORK)
    mined = seen(cse, "--recipe", "infocse", *work, "--columns", "20")
    (direction,) = mined["losses"]["infonce"]["directions"]
    for anchor in direction["shown"]:
        (positive,) = anchor["positives"]
        assert positive["text"] in texts and positive["text"] != anchor["text"]
        same = [(e["text"], e["cosine"]) for e in anchor["masked"]]
        assert (positive["text"], positive["cosine"]) in same
        assert all(text in texts for text, _ in same)
    segments = ("--recipe", "hicl", *work, "--pool.segments.length", "4")
    local = seen(cse, *segments, "--rows", "4", "--columns", "50")["losses"]["local"]
    (direction,) = local["directions"]
    anchors = direction["shown"]
    assert {anchor["slot"] for anchor in anchors} >= {0, 1}
    for anchor in anchors:
        assert anchor["positives"][0]["text"] == anchor["text"]
    shown = [e["text"] for e in [*anchors[0]["negatives"], *anchors[0]["masked"]]]
    assert max(len(text.split()) for text in shown) <= 4, "a segment, not its sentence"


def test_a_loss_that_was_not_computed_says_why(cse: Cse, encoder: str, data: Any) -> None:
    words = ("--recipe", "is-cse", "--model", encoder, *data, *WORK)
    found = seen(cse, *words)["losses"]
    assert found["smoothed"]["value"] is None
    assert found["smoothed"]["why"] == "positive 'knn-smoothing' does not exist yet in this step"
    assert "loss.smoothed: not computed, because positive" in cse("inspect", *words).out


def test_a_loss_of_several_sizes_is_shown_once_a_direction(
    cse: Cse, encoder: str, data: tuple[str, ...]
) -> None:
    both = ("--loss.infonce.directions", "both")
    sizes = ("--loss.infonce.dimensions", "32,16")
    plain, cut = (seen(cse, "--model", encoder, *data, *WORK, *both, *more, "--rows", "1")
                  for more in ((), sizes))  # fmt: skip
    shown = [[direction["shown"][0]["positives"][0] for direction in
              each["losses"]["infonce"]["directions"]] for each in (plain, cut)]  # fmt: skip
    assert shown[0] == shown[1] and len(shown[0]) == 2, "the first size is the whole vector"
    assert cut["losses"]["infonce"]["value"] == cut["metrics"]["infonce.loss"]
