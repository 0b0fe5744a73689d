"""What cleans the terminal's texts, and the check of the table of the terminal."""

import json
import unicodedata

from cse_cli.terminal.console import cleaned
from tests.reliability.terminal import MARK, steering


def test_every_character_that_steers_is_cleaned() -> None:
    every = "".join(map(chr, range(0x110000)))
    left = cleaned(every)
    assert not steering(left)
    assert not any(unicodedata.category(each) == "Cs" for each in left)
    seen = "é 漢字 नमस्ते \U0001f600 a\tb\nc \\u001b ﷽ \u0600"
    assert cleaned(seen) == seen


def test_the_check_and_json() -> None:
    assert len(steering(MARK)) > 8
    assert steering("\x1b[1mred\x1b[0m") == {"\x1b"}
    assert not steering("\x1b[1mred\x1b[0m\r", tty=True)
    printed = json.dumps({"text": MARK + "\udcff\U000e0041"}, ensure_ascii=False)
    assert json.loads(cleaned(printed)) == json.loads(printed)
