"""English verbs: irregular ones with their forms, common regular ones, and their base forms."""

from __future__ import annotations

_IRREGULAR = """
arise arose arisen|awake awoke awoken|bear bore born|beat beat beaten|become became become|
begin began begun|bend bent bent|bet bet bet|bind bound bound|bite bit bitten|bleed bled bled|
blow blew blown|break broke broken|breed bred bred|bring brought brought|
broadcast broadcast broadcast|build built built|burst burst burst|buy bought bought|
cast cast cast|catch caught caught|choose chose chosen|cling clung clung|come came come|
cost cost cost|creep crept crept|cut cut cut|deal dealt dealt|dig dug dug|draw drew drawn|
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed fed|feel felt felt|
fight fought fought|find found found|flee fled fled|fling flung flung|fly flew flown|
forbid forbade forbidden|forecast forecast forecast|forget forgot forgotten|
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|
grind ground ground|grow grew grown|hang hung hung|hear heard heard|hide hid hidden|hit hit hit|
hold held held|hurt hurt hurt|keep kept kept|kneel knelt knelt|know knew known|lay laid laid|
lead led led|leave left left|lend lent lent|let let let|lie lay lain|light lit lit|lose lost lost|
make made made|mean meant meant|meet met met|mistake mistook mistaken|overcome overcame overcome|
oversee oversaw overseen|overtake overtook overtaken|overthrow overthrew overthrown|pay paid paid|
put put put|quit quit quit|read read read|ride rode ridden|ring rang rung|rise rose risen|
run ran run|say said said|see saw seen|seek sought sought|sell sold sold|send sent sent|
set set set|sew sewed sewn|shake shook shaken|shed shed shed|shine shone shone|shoot shot shot|
show showed shown|shrink shrank shrunk|shut shut shut|sing sang sung|sink sank sunk|sit sat sat|
sleep slept slept|slide slid slid|speak spoke spoken|spend spent spent|spin spun spun|
split split split|spread spread spread|spring sprang sprung|stand stood stood|steal stole stolen|
stick stuck stuck|sting stung stung|strike struck struck|strive strove striven|swear swore sworn|
sweep swept swept|swim swam swum|swing swung swung|take took taken|teach taught taught|
tear tore torn|tell told told|think thought thought|throw threw thrown|
undergo underwent undergone|understand understood understood|undertake undertook undertaken|
uphold upheld upheld|wake woke woken|wear wore worn|weave wove woven|weep wept wept|win won won|
wind wound wound|withdraw withdrew withdrawn|withstand withstood withstood|wring wrung wrung|
write wrote written|rebuild rebuilt rebuilt|retake retook retaken|rewrite rewrote rewritten|
outdo outdid outdone|undo undid undone|learn learnt learnt|burn burnt burnt|dream dreamt dreamt|
spell spelt spelt|spoil spoilt spoilt
"""
_REGULAR = """
abandon abolish absorb accept accompany accomplish accuse achieve acknowledge acquire act adapt
add address adjust administer admire admit adopt advance advertise advise advocate affect afford
agree aim alert allege allow alter amend amount analyse analyze announce annoy answer anticipate
apologise apologize appeal appear apply appoint appreciate approach approve argue arm arrange
arrest arrive ascend ask assault assemble assert assess assign assist associate assume assure
attach attack attain attempt attend attract attribute authorize avoid await award back bake
balance ban bark base battle beg behave believe belong benefit bestow bid blame blend bless block
bloom boast boil bomb book boost border borrow bother bounce bow brand breach breathe brush bury
calculate call calm campaign cancel capture care carry carve cast cater cause cease celebrate
center centre challenge change charge charter chase chat cheat check cheer chew circulate cite
claim clarify clash classify clean clear cleave click climb close coach coexist coin collaborate
collapse collect combine command commence comment commission commit communicate compare compel
compete compile complain complete comply compose comprehend compress comprise conceal concede
conceive concentrate concern conclude condemn conduct confer confess confirm confront confuse
connect conquer consider consist constitute construct consult consume contact contain contest
continue contract contribute control converge convert convey convict convince cook cooperate cope
copy correct correspond count counter couple cover crack crash crawl create credit criticise
criticize cross crown cry culminate cultivate curate cure curl dance dare date debate debunk debut
decide declare decline decorate decrease dedicate deem defeat defend define degrade delay delegate
delete deliver demand demolish demonstrate denote deny depart depend depict deploy depose deposit
depress deprive derive descend describe deserve design desire destroy detail detect deteriorate
determine develop deviate devise devote die differ differentiate dig diminish dine direct disagree
disappear disband discharge disclose discontinue discourage discover discuss dislike dismantle
dismiss display dispute disrupt dissolve distinguish distribute dive divide divorce document
dominate donate double doubt draft drag drain dress drift drop drown dry dub dump dwell earn ease
echo edit educate elaborate elect elevate eliminate embark embrace emerge emigrate emit emphasize
employ enable enclose encompass encounter encourage end endanger endorse endure enforce engage
enhance enjoy enlist enrol enroll ensure entail enter entertain equal equip erect escape establish
estimate evacuate evaluate evoke evolve examine exceed exchange exclude excuse execute exercise
exert exhibit exist expand expect expel experience expire explain explode exploit explore export
expose express extend extract face fade fail fan farm fascinate fashion favor favour fear feature
ferment fetch file fill film finance fine finish fire fit fix flash flee flip float flood flourish
flow focus fold follow fool force form foster found frame fulfil fulfill function fund gain gather
generate germinate govern grab graduate grant grapple graze greet grip groom guarantee guard guess
guide halt hand handle happen harbor harbour harm hatch hate haunt head heal heat heighten help
hesitate highlight hike hinder hire honor honour hope host house hug hunt hurry identify ignore
illustrate imagine imitate immigrate impact impair implement implicate imply import impose impress
imprison improve incite include incorporate increase indicate induce inflict influence inform
inhabit inherit inhibit initiate injure insert insist inspect inspire install instigate instruct
insult integrate intend intensify interact interpret interrupt intersect intervene interview
introduce invade invent invest investigate invite invoke involve isolate issue jail join joke
judge jump justify kick kidnap kill kiss knock label lack land last laugh launch lean leap lecture
legalize liberate license lift like limit link list listen live load locate lock look loosen love
lower lure maintain manage manifest manufacture march mark marry master match mate matter mature
measure mediate mention merge merit migrate mind miss mix mobilize model modify monitor motivate
mount move murder name narrate narrow need negotiate nest nominate note notice number nurture obey
object oblige observe obsess obstruct obtain occupy occur offer officiate offset omit open operate
oppose oppress opt orbit order organise organize originate oust outline outnumber overlook own
pack paint parallel park participate pass patrol pause penetrate perceive perform permit persist
persuade phone pick pioneer pitch place plan plant play plead please plot point poison portray
possess post postpone pour practice practise praise pray precede predict prefer prepare present
preserve press presume pretend prevail prevent prey print probe proceed process proclaim produce
program progress prohibit project prolong promise promote pronounce propel propose prosper protect
protest prove provide provoke publish pull pump punish purchase pursue push qualify question quote
race rain raise range rank rate ratify reach react realise realize rebel rebrand recall receive
reckon recognise recognize recommend reconcile reconstruct record recount recover recruit rectify
reduce refer reflect reform refurbish refuse regain regard register regret reign reinforce
reiterate reject relate release relegate relinquish relocate rely remain remake remark remember
remind remove rename render renew rent reopen repair repeal repeat repel replace replicate reply
report represent reproduce request require rescue research resemble reserve reside resign resist
resolve respond rest restore restrict result resume retain retire retreat retrieve return reunite
reveal reverse review revise revive revolve reward rival rob roll rotate row ruin rule rush sack
sail salute sanction satisfy save scale scare scatter score scream screen seal search seat secure
seem seize select sentence separate serve settle shape share shelter shelve shift ship shock shop
shout sign signal simplify sit skate sketch skip slip slow smell smile smoke snap snow soak soar
solve sort sound span spark spawn specialise specialize specify sponsor spot spray sprout
stabilize stage star stare start state stay stem step stipulate stop store straddle strain strand
strengthen stress stretch struggle study stumble subdue submit subscribe subside succeed suffer
suffice suggest suit summon supervise supply support suppose surpass surprise surrender surround
survive suspect suspend sustain swallow switch sympathize tackle talk tame target taste tax
telephone tempt tend terminate test thank threaten thrive thwart tie tilt time tolerate top total
touch tour trace track trade train transcend transfer transform translate transmit transport
travel traverse treat trigger trim triumph trouble trust try tumble turn tweet type underscore
unify unite unveil update upgrade uphold urge use utilize utter vacate vanish vary venture vest
veto view violate visit voice volunteer vote vow wait walk wander want warn wash waste watch water
wave weigh welcome whisper widen wield wipe wish withdraw wither witness wonder work worry worship
wrap yell yield
"""

_FORMS = [tuple(entry.split()) for entry in _IRREGULAR.replace("\n", "").split("|")]
IRREGULAR_PAST: dict[str, str] = {past: base for base, past, _ in _FORMS}
"""Base form of each irregular past form."""
IRREGULAR_PARTICIPLES = frozenset(participle for _, _, participle in _FORMS) | {
    "been", "done", "had", "got", "proven", "shown", "hidden", "beaten",
}  # fmt: skip
VERBS = frozenset(_REGULAR.split()) | {base for base, _, _ in _FORMS} | {"be", "have", "do"}
"""Base forms."""
UNCHANGED = frozenset(base for base, past, _ in _FORMS if base == past)
"""Verbs whose past is their base form."""
PAST_ONLY = frozenset(past for _, past, participle in _FORMS if past != participle) - UNCHANGED
"""Past forms that are no participles."""
_NOT_PAST = frozenset(
    "bed red shed sled need feed seed speed weed breed bleed indeed hundred sacred naked wicked "
    "rugged united exceed proceed succeed embed wed agreed-upon biped beloved kindred hatred "
    "crooked aged reed creed greed steed deed heed one-sided zed ted fred alfred ahmed mohammed "
    "ed".split()
)
_VOWELS = frozenset("aeiou")


def is_participle(low: str) -> bool:
    """Return whether a word can be a past participle."""
    return low in IRREGULAR_PARTICIPLES or base_of_past(low) is not None


def base_of_past(low: str) -> str | None:
    """Return the base form of a past form, None where it is none."""
    if low in IRREGULAR_PAST:
        return IRREGULAR_PAST[low]
    if len(low) < 4 or not low.endswith("ed") or low in _NOT_PAST or "-" in low:
        return None
    stem = low[:-2]
    if not any(letter in "aeiouy" for letter in stem):
        return None
    doubled = len(stem) > 2 and stem[-1] == stem[-2]
    candidates = [stem, stem + "e"]
    if doubled:
        candidates.append(stem[:-1])
    if stem.endswith("i"):
        candidates.append(stem[:-1] + "y")
    known = [each for each in candidates if each in VERBS]
    if stem + "e" in VERBS:
        return stem + "e"
    return known[0] if known else _guess(stem, doubled)


def base_of_third(low: str, *, known: bool = True) -> str | None:
    """Return the base form of a form in -s, None where it is none.

    Args:
        low: The word.
        known: Whether only verbs of the list count.
    """
    if len(low) < 3 or not low.endswith("s") or low.endswith("ss"):
        return None
    candidates = [low[:-1]]
    if low.endswith("ies") and len(low) > 4:
        candidates.insert(0, low[:-3] + "y")
    if low.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        candidates.append(low[:-2])
    for each in candidates:
        if each in VERBS:
            return each
    if known:
        return None
    return candidates[-1] if low.endswith(("xes", "ches", "shes", "sses")) else candidates[0]


def _guess(stem: str, doubled: bool) -> str:
    """Return the likely base form of an unknown verb, given what -ed follows."""
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if doubled:
        return stem if stem[-1] in "lsfz" else stem[:-1]
    before = stem[-2:-1]
    if stem[-1] in "vcus" or (stem[-1] == "z" and before in _VOWELS):
        return stem + "e"
    if stem.endswith(("at", "ut", "ag", "dg", "ng", "rg", "bl", "dl", "gl", "pl", "tl", "kl")):
        return stem if stem.endswith(("eat", "oat", "out", "ng")) else stem + "e"
    one_vowel = before in _VOWELS and stem[-3:-2] not in _VOWELS
    if one_vowel and stem[-1] in "rkmdp" and len(stem) > 2 and before != "e":
        return stem + "e"
    return stem
