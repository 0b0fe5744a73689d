"""Words of closed classes: auxiliaries, pronouns, determiners, prepositions, conjunctions."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


BE = _set("am is are was were")
HAVE = _set("have has had")
DO = _set("do does did")
MODALS = _set("can could may might must shall should will would ought")
AUXILIARIES = BE | HAVE | DO | MODALS
CLITICS = _set("'re 'm 've 'll 'd")
"""Clitics that are always an auxiliary; ``'s`` may be a possessive."""
DENIED = {
    "can't": "can", "won't": "will", "shan't": "shall", "cant": "can", "dont": "do",
    "doesnt": "does", "didnt": "did", "isnt": "is", "arent": "are", "wasnt": "was",
    "werent": "were", "hasnt": "has", "havent": "have", "hadnt": "had", "couldnt": "could",
    "wouldnt": "would", "shouldnt": "should", "cannot": "can",
}  # fmt: skip
"""Negated auxiliaries that are more or less than the auxiliary and n't."""
NOT_FINITE = _set("be been being having doing")

CONTRACTED = {
    "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't",
    "do": "don't", "does": "doesn't", "did": "didn't",
    "have": "haven't", "has": "hasn't", "had": "hadn't",
    "can": "can't", "could": "couldn't", "will": "won't", "would": "wouldn't",
    "should": "shouldn't", "must": "mustn't",
}  # fmt: skip
"""Negated auxiliaries that may stand before a subject."""
POSITIVE_PRONOUNS = {
    "nobody": "somebody", "nothing": "something", "nowhere": "somewhere",
    "neither": "either", "nor": "or", "none": "some",
}  # fmt: skip
"""Negative words and what stands in their place."""

SUBJECTS = _set("i you he she it we they there")
SUBJECTS_OF_CLAUSES = SUBJECTS - {"there"}
"""Pronouns that begin a clause without a relative pronoun: "the books he wrote"."""
PLURAL_SUBJECTS = _set("i you we they these those")
SINGULAR_SUBJECTS = _set(
    "he she it this that who which everyone everybody someone somebody one each everything "
    "something"
)
OBJECTS = _set("me him her it us them you yourself yourselves myself this that these those")
BEFORE_S = _set("he she it that there here what who where how when why this one everyone let")
"""Words behind which ``'s`` is an auxiliary."""
DETERMINERS = _set(
    "a an the my your his her its our their this that these those some any every each no another "
    "whose both all many much few several most more various such 's first second third last own "
    "same other only two three four five six seven eight nine ten"
)
NUMBERS = _set("two three four five six seven eight nine ten all both others")
ARTICLES = _set("a an the my your his her its our their every no 's")
PREPOSITIONS = _set(
    "of in on at by for from with to into onto over under between among through during about "
    "against near per via upon within without toward towards across along behind beside besides "
    "beyond despite except inside outside than like as amid around above below until since atop "
    "amongst beneath underneath alongside throughout opposite"
)
BEHIND_PARTICIPLE = _set("by in on at from for with as of")
CONJUNCTIONS = _set("and or but nor yet so plus")
ADJECTIVES = _set(
    "new old young big small large great good bad high low long short early late main major minor "
    "local national public private free full final common general special recent current former "
    "many few red blue green black white brown golden german french english american british "
    "european international social political military different important own strong true real "
    "official excited various tin yellow orange pink purple grey gray tan dead wooden grassy "
    "sandy snowy tall happy busy empty huge tiny little top bare japanese chinese indian russian "
    "iranian israeli syrian australian canadian egyptian libyan iraqi african"
)
ADVERBS = _set(
    "also often always usually still then now soon later once just even again sometimes ever "
    "never already thus therefore however there here first twice both all perhaps maybe almost "
    "rather only further together instead otherwise not n't"
)
DEGREES = _set("most more very quite so too less")
"""Words that go with the adverb behind them."""
PLACES = _set("here there then now")
"""Adverbs that end a group of an auxiliary and its participles."""
NOT_ADVERBS = _set("family only italy july supply apply reply assembly rely belly bully fly")
"""Words that end in -ly and are no adverbs of manner."""
PLURALS = _set(
    "people men women children police feet teeth mice geese cattle fish sheep couple crowd "
    "aircraft troops leadership forces rebels"
)
COLLECTIVES = _set(
    "opposition team government group family staff crew army navy media pair band company taliban "
    "parliament senate board committee council"
)
"""Nouns that take a verb in either number."""
NEED_OBJECT = _set("lower better open free clear slow calm even long own ready near back down")
"""Adjectives and adverbs that are a verb behind a noun only before an object."""
TURNING = _set("bear go keep steer swing turn veer")
"""Verbs behind which ``left`` is a direction."""
WH = _set("who what when where why how which whom whose")
RELATIVES = _set("who which whom whose where when while because if although though unless whereas")
OPENERS = _set(
    "if when while although though because since after before as unless until whereas once "
    "whenever wherever despite during following"
)
"""Words that open a clause or phrase which a comma ends, before the main clause."""
IDIOMS_OF_NOT = {
    "only": "after", "least": "after", "or": "before", "if": "before", "why": "before",
}  # fmt: skip
"""Neighbours of ``not`` with which it denies nothing: not only, not least, or not, if not."""
MASS = _set(
    "evidence water information money proof access electricity power food air help support "
    "progress room hope hair snow rain music traffic work trouble damage education experience "
    "knowledge truth"
)
"""Nouns that stand without an article."""
AFTER_NO = _set("less fewer later other matter sooner doubt")
"""Words behind ``no`` in phrases that deny nothing."""
NO_VERBS = _set(
    "years months weeks days hours minutes seconds series species news always perhaps sometimes "
    "afterwards towards besides overseas others ones lots thanks whereas minus plus versus gas "
    "sports athletics politics arms clothes goods pants stairs remains headquarters means"
)
"""Words in -s that are no verbs where the lists have none."""
LINKING = _set("get become remain seem look feel")
"""Verbs behind which a participle may stand: "get lost"."""
HELPERS = AUXILIARIES | CLITICS | frozenset(DENIED) | {"'s", "lets"}
"""Words that may be an auxiliary."""
LEADING = _set("no yes please just but and so well ok okay also oh however if not then")
"""Words that may stand before ``don't`` of an imperative."""
POLITE = _set("please so then and but yes ok okay")
"""Words that may stand before an imperative."""
ENDS_OF_NOUNS = (
    "ers", "ors", "ions", "ments", "ists", "ics", "ities", "ness", "isms", "ians", "ants", "ings",
    "ous", "ures", "ages", "ons", "als", "ences", "ances", "ships", "ees", "ews", "oms", "ias",
)  # fmt: skip
"""How many nouns end, and hardly any verbs."""
ENDS_OF_AGENTS = ("ers", "ors", "ists", "ians", "ants", "ees", "men", "ans", "ese", "ents", "cans")
"""How plurals of persons, countries and groups end."""
ENDS_OF_PEOPLES = ("ish", "ese", "ian", "ean", "ani", "eli", "aqi", "can")
"""How adjectives of countries end."""
EPISTEMIC = _set("probably possibly certainly perhaps presumably apparently reportedly")
"""Adverbs behind which ``not`` stands: "was probably not"."""
DIRECTIONS = _set("at into over through up down off out along onto across on in around with to")
"""What may stand behind the unknown verb of a person."""
JOINING = _set("and but or nor yet")
"""Conjunctions behind which a clause with a subject of its own may stand."""
PARTICLES = _set("out up off down away back aside")
"""What belongs to a verb in front of it: "rules out"."""
DAYS = _set("monday tuesday wednesday thursday friday saturday sunday")
NUMERALS = _set("one two three four five six seven eight nine ten dozens hundreds thousands scores")
BOUNDARIES = _set(
    "because although though unless whereas if when whenever while where which who whose whom "
    "that than whether how why what until once"
)
"""Words that open a clause of its own; a verb behind them is not the main clause's."""
SUBORDINATORS = _set("if when while although though because unless whereas whenever")
"""Openers behind which there is a clause, and never a mere noun."""
TIMES = _set(
    "year month week day night morning evening afternoon summer winter spring autumn season time "
    "moment decade century today yesterday tomorrow tonight point way"
)
"""Nouns behind which a subject pronoun begins the main clause: "that year she won"."""
REPORTING = _set(
    "say think believe know hope claim feel guess suppose see hear wish mean tell realize realise "
    "find assume ensure admit announce argue state note remember imagine bet decide show suggest "
    "explain learn understand report insist reveal swear doubt fear prove recommend agree ask "
    "prefer declare discover notice expect make let help"
)
"""Verbs that take a clause without ``that``."""
SUBJECTS_DENIED = _set("no nobody nothing neither none")
"""Negative words that deny a subject wherever it begins."""
POLAR = _set("either anymore yet ever until till least whatsoever")
"""Words that want a negation before them."""
BEHIND_NOT = _set("really quite necessarily exactly too very sure much many long")
"""Words behind ``not`` that do not stand well without it."""
TEMPORAL = _set(
    "recently originally initially subsequently eventually finally currently previously later "
    "formerly unfortunately additionally apparently supposedly presumably allegedly reportedly "
    "consequently accordingly similarly certainly possibly probably surely"
)
"""Adverbs of a whole sentence, which did not stands behind."""
SCOPED = _set("even only just really simply merely always often usually ever first actually fully")
"""Adverbs that did not stands before: "did not even say"."""
INTRANSITIVE = _set(
    "die rise fall come go happen arrive occur appear disappear drop soar plunge slump surge "
    "climb decline emerge remain stay live exist vanish spy collapse explode erupt crash clash "
    "agree vow resign vote protest rally march travel sleep run walk sit stand lie look smile "
    "laugh play listen wait jump swim skate dance sing talk speak belong consist depend work "
    "serve last"
)
"""Verbs whose form in -ed is a past without an object behind it."""
TRANSITIVE = _set(
    "find kill arrest charge name jail sentence ban capture injure wound seize rescue free hurt "
    "expect accuse convict elect appoint detain kidnap damage destroy make build trap abduct "
    "execute evacuate reveal unveil approve design use call hold publish produce create write "
    "know need send take give bring put report fear"
)
"""Verbs whose form in -ed is a participle where no object stands behind it."""
FRONTS_OF_CAPTIONS = NUMERALS | {"a", "an", "some", "several"}
OPENING = RELATIVES | {"that", "as", "what", "how", "whatever"}
"""Words that may open a clause about a noun before them."""
CLOSING = BOUNDARIES | JOINING | SUBJECTS | {"as"}
"""Words with which the clause of a verb may end."""
STATES = _set(
    "placed displayed held used dressed seated covered parked surrounded lined filled made tied "
    "perched located decorated piled stacked topped loaded attached mounted situated crowded clad "
    "gathered wrapped painted built based known called named set shown"
)
"""Participles that say how something is: "a man dressed in black"."""
PEOPLE = _set(
    "man woman boy girl person baby kid lady guy people men women boys girls children kids dog "
    "dogs cat cats players someone couple chef guitarist cyclist motorcyclist biker rider skier "
    "surfer skateboarder snowboarder dancer singer runner swimmer bird horse cow goat monkey "
    "elephant toddler teenager climber gymnast athlete musician soldier puppy kitten lion bear"
)
SHORT_PARTICIPLES = _set("set hit cut hurt shut found")
"""Base forms that stand as participles in headlines."""
NOUNS_IN_ING = _set(
    "building painting drawing meeting hearing wedding clothing ceiling railing opening crossing "
    "landing parking ending feeling killing shooting bombing warning ruling training funding "
    "housing offering setting dressing icing filling swimming morning evening during including "
    "following according regarding concerning pending nothing something anything everything thing "
    "king ring spring string wing sibling living being stabbing spending trading saving earning "
    "sing bring lightning accounting banking boxing racing fighting"
)
TAKES_TO = _set(
    "plan plans attempt attempts bid bids effort efforts decision decisions right rights move "
    "moves way ways time deal call calls chance need pressure threat things thing desire order "
    "reason reasons place places steps ability how what where when used able going ought answer "
    "response approach return according due close up down back out access damage threats aid"
)
"""Words whose ``to`` is not a headline's future: "plan to build"."""
PREDICATES = _set("dead missing likely ready back unlikely unhurt guilty alive safe")
"""What stands behind the subject of a headline without a verb: "six dead in attack"."""
SOME = {
    "any": "some", "anything": "something", "anyone": "someone", "anybody": "somebody",
    "anywhere": "somewhere",
}  # fmt: skip
"""Words that want a negation, and what stands for them without one."""
BEFORE_NO = _set("or say says said to")
"""Words before ``no`` with which it is an answer or part of a phrase."""
FRONTS = DETERMINERS - {"'s"} | {"one", "dozens"}
"""Words that begin a noun phrase."""
FUNCTION_WORDS = (
    SUBJECTS | OBJECTS | DETERMINERS | PREPOSITIONS | CONJUNCTIONS | OPENERS | WH | ADVERBS
) - {"i"}
"""Words that need no capital letter inside a sentence."""


def is_adverb(low: str) -> bool:
    """Return whether a word may stand between a subject and its verb."""
    return low in ADVERBS or (len(low) > 4 and low.endswith("ly") and low not in NOT_ADVERBS)
