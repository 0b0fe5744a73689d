"""The kit over InfoCSE's distribution, parts and recipes; ``test_recipes`` has their settings."""

from __future__ import annotations

from cse_testkit import AugmenterSuite, MinerSuite, PluginSuite, PoolerSuite, RecipeSuite

DOCUMENTS = ("document", "title")


class TestPlugin(PluginSuite):
    distribution = "cse-infocse"


class TestSentences(PoolerSuite):
    part = ("pool", "sentences")


class TestSpanMask(AugmenterSuite):
    part = ("aug", "span-mask")


class TestIdc(MinerSuite):
    part = ("positives", "idc")
    columns = DOCUMENTS


class TestIdcKmeans(MinerSuite):
    part = ("positives", "idc-kmeans")
    options = {"clusters": 2}
    columns = DOCUMENTS


class TestIdcLabels(MinerSuite):
    part = ("positives", "idc-labels")
    columns = DOCUMENTS


class TestLabels(MinerSuite):
    part = ("positives", "labels")
    columns = DOCUMENTS


class TestNeighbour(MinerSuite):
    part = ("positives", "neighbour")
    columns = DOCUMENTS


class TestInverseCloze(MinerSuite):
    part = ("positives", "inverse-cloze")
    columns = DOCUMENTS


class TestPrecedingContext(MinerSuite):
    part = ("positives", "preceding-context")
    options = {"context": "mean"}
    columns = DOCUMENTS


class TestSpan(MinerSuite):
    part = ("positives", "span")
    options = {"combine": "mean"}
    columns = DOCUMENTS


class TestInfocse(RecipeSuite):
    recipe = "infocse"


class TestFinetune(RecipeSuite):
    recipe = "infocse-finetune"


class TestPlus(RecipeSuite):
    recipe = "infocse-plus"


class TestNeighbourRecipe(RecipeSuite):
    recipe = "neighbour"


class TestInverseClozeRecipe(RecipeSuite):
    recipe = "inverse-cloze"
    # Four pairs in order are of one document, whose sentences are no negatives of each other.
    sets = ("train.batch_size=8",)


class TestPrecedingContextRecipe(RecipeSuite):
    recipe = "preceding-context"


class TestSpanRecipe(RecipeSuite):
    recipe = "span"


class TestMirrorBert(RecipeSuite):
    recipe = "mirror-bert"
