"""What deletion, synonyms and insertion make of a text."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import compose, make_context, make_part

from cse_core.types import View
from tests.fixtures.methods import refusal

VIEW = View("positive", "positive", "online")
LEXICON = Path(__file__).parent / "lexicon.tsv"
TEXT = "Anna paints the boat, then it finds an old clock."
WORDS = "Anna paints the boat then it finds an old clock".split()


def changed(name: str, texts: list[str], step: int = 0, **options: Any) -> list[str]:
    part = make_part("aug", name, **options)
    found: list[str] = part(texts, None, VIEW, make_context(step=step))
    assert len(found) == len(texts)
    return found


def words(text: str) -> list[str]:
    return text.replace(",", " ").replace(".", " ").split()


def test_deletion_takes_each_word_with_its_probability() -> None:
    texts = changed("random-deletion", [TEXT] * 300, rate=0.2)
    kept = Counter(word for text in texts for word in words(text))
    assert set(kept) == set(WORDS)
    assert all(kept[word] == pytest.approx(240, abs=35) for word in WORDS)
    assert all(text.count(",") == 1 and text.endswith(".") for text in texts)
    assert all("  " not in text and text == text.strip() for text in texts)
    assert any(text == TEXT for text in changed("random-deletion", [TEXT] * 40, rate=0.05))


def test_one_word_always_stays() -> None:
    for text in changed("random-deletion", ["anna paints boat", "boat"] * 50, rate=0.99):
        assert len(words(text)) == 1 and text in ("anna", "paints", "boat")
    assert changed("random-deletion", ["...", "?!"], rate=0.9) == ["...", "?!"]


def test_deletion_without_blanks() -> None:
    (text,) = changed("random-deletion", ["一只猫睡在窗户边上。"], rate=0.5, unit="character")
    assert text.endswith("。") and 1 < len(text) < 10 and set(text) <= set("一只猫睡在窗户边上。")
    assert changed("random-deletion", ["一只猫睡在窗户边上。"], rate=0.9) == [
        "一只猫睡在窗户边上。"
    ]


def test_synonyms_replace_a_share_of_the_words() -> None:
    """Ten words, of which the lexicon knows six; letters of either case."""
    own = {"boat": {"ship", "vessel"}, "paints": {"colours"}, "finds": {"discovers"}}
    own |= {"the": {"that"}, "old": {"aged"}, "clock": {"timepiece"}}
    for rate, count in ((0.0, 1), (0.1, 1), (0.3, 3), (0.9, 6)):
        seen: Counter[str] = Counter()
        for text in changed("synonym", [TEXT] * 60, lexicon=str(LEXICON), rate=rate):
            others = [(a, b) for a, b in zip(WORDS, words(text), strict=True) if a != b]
            assert len(others) == count
            assert all(b in own[a] for a, b in others)
            assert text.count(",") == 1 and text.endswith(".")
            seen.update(b for _, b in others)
        assert set(seen) == set().union(*own.values()), "each synonym has its turn"
    assert changed("synonym", ["emil sells"], lexicon=str(LEXICON)) == ["emil sells"]
    assert changed("synonym", ["Paints", "OLD"], lexicon=str(LEXICON)) == ["colours", "aged"]


def test_insertion_puts_words_between_those_that_are_there() -> None:
    known = {"ship", "vessel", "colours", "discovers", "that", "aged", "timepiece"}
    for lexicon, choice in ((None, set(WORDS)), (str(LEXICON), known)):
        firsts, lasts = 0, 0
        for text in changed("random-insertion", [TEXT] * 200, lexicon=lexicon, rate=0.2):
            found = words(text)
            assert len(found) == len(WORDS) + 2
            left = iter(found)
            assert all(word in left for word in WORDS), "the text's own words stay in their order"
            assert set(Counter(found) - Counter(WORDS)) <= choice
            firsts, lasts = firsts + (found[0] != "Anna"), lasts + (found[-1] != "clock")
        assert firsts and lasts, "before the first word and behind the last"
        assert changed("random-insertion", ["..."], lexicon=lexicon) == ["..."]
    (text,) = changed("random-insertion", ["emil sells"], lexicon=str(LEXICON))
    assert Counter(words(text)) - Counter(["emil", "sells"]) <= Counter(["emil", "sells"])


def test_characters_are_inserted_without_blanks() -> None:
    (text,) = changed("random-insertion", ["一只猫。"], unit="character")
    assert len(text) == 5 and " " not in text and text.endswith("。")


def test_what_is_no_lexicon_is_refused_in_one_line(tmp_path: Path) -> None:
    table, empty = tmp_path / "other.tsv", tmp_path / "empty.tsv"
    table.write_text("word\tmeaning\nboat\tship\n", encoding="utf-8")
    empty.write_text("word\tsynonym\nboat\t\n", encoding="utf-8")
    line = refusal(make_part, "aug", "synonym", lexicon=str(table))
    assert "aug.synonym.lexicon: has no column synonym" in line
    line = refusal(make_part, "aug", "synonym", lexicon=str(empty))
    assert "holds no word with a synonym" in line
    line = refusal(compose, kinds={"aug": ["synonym"]})
    assert "aug.synonym: has no synonyms; name a table" in line
    for name in ("synonym", "random-insertion"):
        gone = [f"aug.{name}.lexicon={tmp_path / 'gone.tsv'}"]
        assert "no such file" in refusal(compose, kinds={"aug": [name]}, sets=gone)
