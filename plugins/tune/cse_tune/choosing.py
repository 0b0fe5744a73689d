"""Which encoder is best for one's own texts: what ``cse choose`` does, without labels."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from cse import LEVEL, Bm25, TextEncoder, corrected, load, questions
from cse_cli.api import Installed, Models, check_model
from cse_core.errors import CseError
from cse_core.protocols import Corpus
from cse_core.suites import in_role
from cse_core.texts import DataOptions
from cse_tune.race import Gains, as_json, difference_of

KINDS = ("titles", "headings", "sentences")
"""What asks for a text, in the order in which it decides: what titles find goes best with what
judged queries find."""
QUESTIONS, POOL = 500, 3_000
"""Questions of a kind, and texts among which they look, at most."""
LEAST = 30
"""Questions of a kind that can decide."""
MEASURE = f"ndcg@{questions.FIRST}"
WORDS = "BM25"
_TRAINED = ("note: {}: if it was trained on these texts, it knows their titles, and finds more of "
            "them than of what people ask")  # fmt: skip


class Asked(NamedTuple):
    """Questions of each kind.

    Attributes:
        kinds: By kind; those that the texts lack are missing.
        ordered: Whether the words of the texts are in an order that recurs.
        messages: What was noticed in reading, a line each.
    """

    kinds: Mapping[str, questions.Questions]
    ordered: bool
    messages: tuple[str, ...]

    @property
    def decides(self) -> str:
        """The kind that decides.

        Raises:
            CseError: If there are too few questions of any kind.
        """
        for kind in KINDS:
            if kind in self.kinds and len(self.kinds[kind].asked) >= LEAST:
                return kind
        counts = ", ".join(f"{len(asked.asked)} {kind}" for kind, asked in self.kinds.items())
        what = f"{counts or 'nothing'} can ask for texts, and {LEAST} of a kind are needed"
        raise CseError(what, where="cse choose", hint="name more texts")


def questions_of(files: Sequence[str], plugins: Installed) -> Asked:
    """Read texts, and make questions of them.

    Raises:
        CseError: If the texts cannot be read.
    """
    corpus = plugins.read(DataOptions(path=tuple(files))).corpus()
    rows, parts = _some(corpus)
    documents = {part.document for part in parts}
    by_title = _fewer(questions.by_titles(parts, documents))
    texts = tuple(part.body for part in parts)
    headings = [""] * len(parts)
    if "headings" in corpus.names:
        headings = [text.rpartition(" > ")[2] for text in corpus.column("headings").take(rows)]
    made = {
        "titles": by_title,
        "headings": _fewer(_by_headings(parts, headings)),
        "sentences": _by_sentences(parts),
    }
    kinds = {kind: asked for kind, asked in made.items() if asked.asked}
    return Asked(kinds, questions.in_order(texts[:1_000]), corpus.report.messages)


def _some(corpus: Corpus) -> tuple[list[int], list[questions.Part]]:
    """Return the rows of whole documents, drawn by their first texts, about ``POOL`` of them."""
    every = questions.parts_of(corpus)
    first = {part.document: part.body for part in reversed(every)}
    order = sorted(first, key=lambda document: questions.draw(first[document]))
    counts = dict.fromkeys(order, 0)
    for part in every:
        counts[part.document] += 1
    chosen, size = set(), 0
    for document in order:
        if size < POOL:
            chosen.add(document)
            size += counts[document]
    rows = [row for row, part in enumerate(every) if part.document in chosen]
    return rows, [every[row] for row in rows]


def _fewer(asked: questions.Questions) -> questions.Questions:
    kept = sorted(asked.asked, key=lambda pair: questions.draw(pair[1]))[:QUESTIONS]
    return asked._replace(asked=tuple(kept))


def _by_headings(parts: Sequence[questions.Part], headings: Sequence[str]) -> questions.Questions:
    """Ask for each section by its heading, if no other section has it."""
    sections = [(part.document, heading) for part, heading in zip(parts, headings, strict=True)]
    numbers = {section: number for number, section in enumerate(dict.fromkeys(sections))}
    named: dict[str, list[int]] = {}
    for (_, heading), number in numbers.items():
        named.setdefault(heading.casefold(), []).append(number)
    titles = {part.document: part.title.casefold() for part in parts}
    asked = [
        (number, heading)
        for (document, heading), number in numbers.items()
        if heading and named[heading.casefold()] == [number]
        and heading.casefold() != titles[document]
    ]  # fmt: skip
    owners = tuple(numbers[section] for section in sections)
    return questions.Questions(tuple(part.body for part in parts), owners, tuple(asked))


def _by_sentences(parts: Sequence[questions.Part]) -> questions.Questions:
    """Ask for texts by one of their sentences, which is taken out of them."""
    texts = [part.body for part in parts]
    asked: list[tuple[int, str]] = []
    for row in sorted(range(len(parts)), key=lambda row: questions.draw(texts[row])):
        pair = questions.by_sentence("", texts[row], questions.draw(texts[row]))
        if pair is not None and len(asked) < QUESTIONS:
            asked.append((row, pair.question))
            texts[row] = pair.answer
    return questions.Questions(tuple(texts), tuple(range(len(texts))), tuple(asked))


def choose(
    plugins: Installed,
    files: Sequence[str],
    models: Sequence[str],
    *,
    max_length: int | None = None,
    device: str = "auto",
    precision: str = "auto",
    batch_tokens: int | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Compare encoders on texts: titles, headings and sentences look for the texts they are of.

    Args:
        plugins: The installed plugins.
        files: Folders of documents, or tables.
        models: At least one.
        max_length: Tokens of the longest text; by default what each model says.
        device: As in ``cse.load``.
        precision: As in ``cse.load``.
        batch_tokens: Tokens that an encoder is given at once, about.
        say: Hears of each model.

    Returns:
        ``verdict`` in a sentence, ``decides``, ``models`` from the first to the last with their
        scores by kind, ``words`` (BM25) and ``pairs``: the difference of every two, with the
        interval and p corrected for all pairs.

    Raises:
        CseError: If a model or a file is wrong, or the texts have too few questions.
    """
    asked = questions_of(files, plugins)
    kind = asked.decides
    for name in models:
        check_model(name, plugins.registry, max_length=max_length)
    scored: dict[str, dict[str, Gains]] = {}
    facts: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(models):
        model = load(
            name, max_length=max_length, device=device, precision=precision, plugins=plugins
        )
        encode = TextEncoder(model.loaded, batch_tokens)
        began = time.monotonic()
        scored[name], size, count = _gains(encode, asked)
        speed = count / max(time.monotonic() - began, 1e-9)
        facts[name] = {"dimensions": size, "texts_per_second": round(speed, 1)}
        if encode.note:
            facts[name]["note"] = encode.note
        say(f"{name}: {100 * scored[name][kind].mean():.2f} of {kind}")
    messages = [*asked.messages, *(_TRAINED.format(name) for name in scored
                                   if _trained(name, plugins))]  # fmt: skip
    return {**_compared(scored, facts, asked, kind), "messages": messages}


def _trained(name: str, plugins: Installed) -> bool:
    """Tell whether a model was trained by the toolkit, whose card stands beside its recipe."""
    folder = Models(plugins.registry).find(name)
    return folder is not None and (folder / "recipe.toml").is_file()


def _gains(encode: TextEncoder, asked: Asked) -> tuple[dict[str, Gains], int, int]:
    """Return nDCG@10 of each question by kind, numbers of a vector, and how many texts there are.

    A text is encoded once for all kinds.
    """
    texts = [*dict.fromkeys(text for kind in asked.kinds.values() for text in kind.texts)]
    places = {text: place for place, text in enumerate(texts)}
    vectors = questions.finite(in_role(encode, "document")(texts))
    gains = {}
    for name, kind in asked.kinds.items():
        ask = questions.finite(in_role(encode, "query")([text for _, text in kind.asked]))
        scores = kind.scores(encode, (ask, vectors[[places[text] for text in kind.texts]]))
        gains[name] = questions.measures(kind.ranks(scores))[MEASURE]
    return gains, int(vectors.shape[1]), len(texts)


def _words(asked: questions.Questions) -> Gains:
    scores = Bm25.of(asked.texts).of_queries([text for _, text in asked.asked])
    return questions.measures(asked.ranks(scores))[MEASURE]


def _compared(
    scored: Mapping[str, Mapping[str, Gains]],
    facts: Mapping[str, Mapping[str, Any]],
    asked: Asked,
    kind: str,
) -> dict[str, Any]:
    order = sorted(scored, key=lambda name: -scored[name][kind].mean())
    pairs = [*combinations(order, 2)]
    made = [difference_of([scored[one][kind]], [scored[other][kind]]) for one, other in pairs]
    differences = dict(zip(pairs, corrected(made, len(made)), strict=True))
    equal = [other for other in order[1:] if differences[order[0], other].p >= LEVEL]
    count = len(asked.kinds[kind].asked)
    best = f"{order[0]} finds most: nDCG@10 {100 * scored[order[0]][kind].mean():.2f}"
    by = f"of {count:,} {kind} among {len(asked.kinds[kind].texts):,} texts"
    beside = ""
    if len(order) > 1:
        beside = f"; not distinguishable from it: {', '.join(equal)}" if equal else (
            "; it is above every other"
        )  # fmt: skip
    beside += questions.doubts(ordered=asked.ordered)
    return {
        "verdict": f"{best} {by}{beside}",
        "decides": kind,
        "questions": {name: len(one.asked) for name, one in asked.kinds.items()},
        "texts": len(asked.kinds[kind].texts),
        "models": [
            {"model": name, "scores": {k: float(100 * gains.mean())
                                       for k, gains in scored[name].items()}, **facts[name]}
            for name in order
        ],
        "words": {name: float(100 * _words(one).mean()) for name, one in asked.kinds.items()},
        "pairs": [{"models": pair, **as_json(found)} for pair, found in differences.items()],
    }  # fmt: skip
