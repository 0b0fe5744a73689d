"""English sentences from meanings: wordings, frames and verb forms."""

from __future__ import annotations

from grammar.draws import Draws
from grammar.lexicon import Forms, Noun
from grammar.meaning import Event, Fact, Sentence, State

_IRREGULAR = {
    line.split()[0]: (line.split()[1], line.split()[2], line.split()[3])
    for line in """
    be was been being
    break broke broken breaking
    bring brought brought bringing
    build built built building
    buy bought bought buying
    catch caught caught catching
    choose chose chosen choosing
    come came come coming
    cut cut cut cutting
    deal dealt dealt dealing
    dig dug dug digging
    do did done doing
    draw drew drawn drawing
    drive drove driven driving
    feed fed fed feeding
    feel felt felt feeling
    find found found finding
    forget forgot forgotten forgetting
    get got got getting
    give gave given giving
    go went gone going
    grind ground ground grinding
    grow grew grown growing
    have had had having
    hide hid hidden hiding
    hold held held holding
    keep kept kept keeping
    lay laid laid laying
    lead led led leading
    learn learned learned learning
    leave left left leaving
    lend lent lent lending
    let let let letting
    lose lost lost losing
    make made made making
    mislay mislaid mislaid mislaying
    overturn overturned overturned overturning
    pay paid paid paying
    put put put putting
    read read read reading
    rebuild rebuilt rebuilt rebuilding
    rewrite rewrote rewritten rewriting
    ring rang rung ringing
    run ran run running
    say said said saying
    see saw seen seeing
    sell sold sold selling
    send sent sent sending
    set set set setting
    shine shone shone shining
    shoot shot shot shooting
    shut shut shut shutting
    sing sang sung singing
    sink sank sunk sinking
    speak spoke spoken speaking
    spend spent spent spending
    steal stole stolen stealing
    strike struck struck striking
    take took taken taking
    teach taught taught teaching
    tear tore torn tearing
    tell told told telling
    throw threw thrown throwing
    try tried tried trying
    turn turned turned turning
    underwrite underwrote underwritten underwriting
    win won won winning
    withdraw withdrew withdrawn withdrawing
    write wrote written writing
    """.splitlines()
    if line.strip()
}
_DOUBLING = frozenset(
    "plan stop chop trim swap ship tap pat map drop plug tag log scrub chip transfer refer control "
    "patrol compel equip dub stir wrap scan rub mop strip fit pin label travel marvel signal "
    "model cancel annul drag spot trap unwrap whet".split()
)


def inflect(verb: str) -> tuple[str, str, str]:
    """Return past, participle and -ing form of a verb, inflecting the first of its words."""
    head, space, rest = verb.partition(" ")
    if head in _IRREGULAR:
        past, participle, gerund = _IRREGULAR[head]
    elif head in _DOUBLING:
        past = participle = head + head[-1] + "ed"
        gerund = head + head[-1] + "ing"
    elif head.endswith("e"):
        past = participle = head + "d"
        gerund = head[:-1] + "ing"
    elif head.endswith("y") and head[-2] not in "aeiou":
        past = participle = head[:-1] + "ied"
        gerund = head + "ing"
    else:
        past = participle = head + "ed"
        gerund = head + "ing"
    tail = space + rest
    return past + tail, participle + tail, gerund + tail


class Wording:
    """Choose among the wordings of each meaning, and remember what was chosen.

    Frames are chosen in the same way as words: as one of several names.

    Args:
        draws: Source of the choices.
        earlier: Choices of an earlier sentence.
        eagerness: Probability of departing from an earlier choice: 0 repeats all, 1 none.
    """

    def __init__(
        self, draws: Draws, earlier: dict[Forms, str] | None = None, eagerness: float = 0.0
    ) -> None:
        """Start with nothing chosen."""
        self.draws = draws
        self.earlier = earlier or {}
        self.eagerness = eagerness
        self.chosen: dict[Forms, str] = {}

    def reworded(self, eagerness: float) -> Wording:
        """Return a wording that departs from this one's choices with the probability given."""
        return Wording(self.draws, self.chosen, eagerness)

    def say(self, forms: Forms, slot: str = "") -> str:
        """Return one of the forms: the same one each time within a sentence and slot."""
        key = (slot, *forms)
        if key in self.chosen:
            return self.chosen[key]
        before = self.earlier.get(key)
        if before is None:
            form = self.draws.one(forms)
        elif len(forms) > 1 and self.draws.chance(self.eagerness):
            form = self.draws.other(forms, before)
        else:
            form = before
        self.chosen[key] = form
        return form


def _the(noun: Noun, wording: Wording) -> str:
    return f"the {wording.say(noun.forms)}"


def _agent(event: Event, wording: Wording) -> str:
    role = wording.say(event.agent.forms)
    if event.surname is None:
        return f"the {role}"
    if wording.say(("title", "named")) == "title":
        return f"{role} {event.surname}"
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role} named {event.surname}"


def _amount(event: Event, wording: Wording) -> str | None:
    if event.amount is None or event.number is None:
        return None
    word, digits, _ = event.number
    return wording.say(event.amount.forms).format(n=wording.say((word, digits)))


def _place(clause: Event | State, wording: Wording) -> list[str]:
    result = []
    if clause.place is not None:
        result.append(wording.say(clause.place.forms))
    if clause.city is not None:
        city = clause.city.forms[0]
        result.append(wording.say((f"in {city}", f"in the city of {city}")))
    return result


def _core(event: Event, wording: Wording, slot: str) -> str:
    """Say who did what, in one of several frames."""
    agent, thing = _agent(event, wording), _the(event.thing, wording)
    verb = wording.say(event.verb.forms)
    past, participle, gerund = inflect(verb)
    passive = event.verb.forms[0] not in ("lose", "win") and not verb.startswith(("be ", "come "))
    if event.negated:
        frames: Forms = ("active", "passive", "never") if passive else ("active", "never")
        frame = wording.say(frames, slot)
        if frame == "passive":
            return f"{thing} was not {participle} by {agent}"
        if frame == "never":
            return f"{agent} never {past} {thing}"
        return f"{agent} did not {verb} {thing}"
    frames = ("active", "passive") if passive else ("active",)
    if slot == "alone":
        frames += ("cleft", "task")
    frame = wording.say(frames, slot)
    if frame == "passive":
        return f"{thing} was {participle} by {agent}"
    if frame == "cleft":
        return f"it was {agent} who {past} {thing}"
    if frame == "task":
        return f"the task of {gerund} {thing} fell to {agent}"
    return f"{agent} {past} {thing}"


def _event(event: Event, wording: Wording, slot: str) -> str:
    parts = [_core(event, wording, slot)]
    if event.manner is not None:
        parts.append(wording.say(event.manner.forms))
    amount = _amount(event, wording)
    if amount is not None:
        parts.append(amount)
    parts += _place(event, wording)
    front: list[str] = []
    if event.time is not None:
        time = wording.say(event.time.forms)
        if slot == "alone" and wording.say(("time first", "time last")) == "time first":
            front.append(f"{time},")
        else:
            parts.append(time)
    if event.purpose is not None:
        parts.append(wording.say(("in order to", "so as to", "to")))
        parts.append(wording.say(event.purpose.forms))
    if event.reason is not None:
        conjunction = wording.say(("because", "since", "as"))
        reason = f"{conjunction} {wording.say(event.reason.forms)}"
        if slot == "alone" and wording.say(("reason first", "reason last")) == "reason first":
            front.insert(0, f"{reason},")
        else:
            parts.append(reason)
    return " ".join(front + parts)


def _state(state: State, wording: Wording, slot: str) -> str:
    thing, quality = _the(state.thing, wording), wording.say(state.quality.forms)
    if state.negated:
        link = wording.say(("was not", "was by no means"))
        core = f"{thing} {link} {quality}"
    elif wording.say(("was", "found")) == "was":
        core = f"{thing} was {quality}"
    else:
        core = f"people found that {thing} was {quality}"
    parts = [core, *_place(state, wording)]
    if state.time is not None:
        time = wording.say(state.time.forms)
        if slot == "alone" and wording.say(("time first", "time last")) == "time first":
            parts.insert(0, f"{time},")
        else:
            parts.append(time)
    if state.reason is not None:
        parts.append(f"{wording.say(('because', 'since', 'as'))} {wording.say(state.reason.forms)}")
    return " ".join(parts)


def _clause(clause: Event | State | Fact, wording: Wording, slot: str) -> str:
    if isinstance(clause, Event):
        return _event(clause, wording, slot)
    if isinstance(clause, State):
        return _state(clause, wording, slot)
    frame = wording.say(clause.frame.forms)
    return frame.format(a=_the(clause.first, wording), b=_the(clause.second, wording))


def english(sentence: Sentence, wording: Wording) -> str:
    """Return the sentence in English, worded by `wording`, with capital and full stop."""
    plain = sentence.source is None and sentence.second is None and sentence.opener is None
    text = _clause(sentence.first, wording, "alone" if plain else "first")
    if sentence.second is not None:
        other = _clause(sentence.second, wording, "second")
        if sentence.link == "then":
            frame = wording.say(("before", "after", "before later", "after later"))
            text = {
                "before": f"before {other}, {text}",
                "after": f"after {text}, {other}",
                "before later": f"{text} before {other}",
                "after later": f"{other} after {text}",
            }[frame]
        else:
            frame = wording.say(("while", "while later", "at the same time"))
            text = {
                "while": f"while {text}, {other}",
                "while later": f"{other} while {text}",
                "at the same time": f"{text}, and at the same time {other}",
            }[frame]
    if sentence.opener is not None:
        text = f"{wording.say(sentence.opener.forms)}, {text}"
    if sentence.source is not None:
        frame = wording.say(("according", "reported", "as told"))
        text = {
            "according": f"according to {sentence.source}, {text}",
            "reported": f"{sentence.source} reported that {text}",
            "as told": f"as {sentence.source} told the newspaper, {text}",
        }[frame]
    return text[0].upper() + text[1:] + "."
