"""The suite of adapters."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, cast

import torch

from cse_core.parts import Adapter
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import after, promise
from cse_testkit.snapshots import difference, snapshot


class AdapterSuite(PartSuite):
    """What an adapter promises, beside what every part does."""

    _may_change: ClassVar[tuple[str, ...]] = ("requires_grad",)

    @after("test_it_runs")
    def test_what_it_trains_moves_and_nothing_else(self) -> None:
        """After two steps every weight that requires a gradient moved, and no other did."""
        rig = self.trial().fresh("train.lr=1e-2")
        weights = dict(rig.assembly.online.encoder.named_parameters())
        before = {name: each.detach().clone() for name, each in weights.items()}
        trained = [name for name, each in weights.items() if each.requires_grad]
        promise(bool(trained), "no weight of the encoder trains")
        rig.step(2)
        moved = {name for name, each in weights.items() if not torch.equal(each, before[name])}
        still = sorted(set(trained) - moved)
        promise(not still, f"require a gradient and do not move: {', '.join(still[:3])}")
        others = sorted(moved - set(trained))
        promise(not others, f"require no gradient and move: {', '.join(others[:3])}")

    @after("test_it_runs")
    def test_a_merged_model_gives_the_same_vectors(self) -> None:
        """``merged`` has the weights of a plain encoder, and changes nothing of the adapted one."""
        rig = self.trial().fresh("train.lr=1e-2")
        rig.step(2)
        adapter = cast(Adapter, rig.assembly.parts[self.trial().path])
        encoder = rig.assembly.online.encoder
        texts = list(self.trial().corpus.column("text"))[:6]
        before = snapshot(dict(encoder.model.state_dict()))
        merged = adapter.merged(encoder.model)
        where = difference(before, snapshot(dict(encoder.model.state_dict())))
        promise(where is None, f"merged changes {where} of the adapted encoder")
        names = set(merged.state_dict())
        plain = {name for name in type(merged)(merged.config).state_dict() if "pooler" not in name}
        promise(names == plain, f"merged has other weights: {sorted(names ^ plain)[:3]}")
        wanted = rig.encode(texts)
        own, encoder.model = encoder.model, merged
        found = rig.encode(texts)
        encoder.model = own
        promise(
            torch.allclose(found, wanted, rtol=1e-4, atol=1e-5),
            f"merged, vectors differ by up to {float((found - wanted).abs().max()):.2g}",
        )

    @after("test_it_runs")
    def test_it_saves_the_same_twice(self) -> None:
        """``save`` may write nothing; what it writes is the same again."""
        trial = self.trial()
        adapter = cast(Adapter, trial.part)
        model = trial.rig.assembly.online.encoder.model
        files: list[dict[str, bytes]] = []
        with tempfile.TemporaryDirectory(prefix="cse-adapter-") as folder:
            for name in ("one", "two"):
                adapter.save(model, Path(folder) / name)
                written = (path for path in (Path(folder) / name).rglob("*") if path.is_file())
                files.append({path.name: path.read_bytes() for path in written})
        promise(files[0] == files[1], "saved twice, its files differ")

    @after("test_it_runs")
    def test_a_copy_of_the_encoder_works_by_itself(self) -> None:
        """A branch's copy gives the same vectors, and shares what does not train alone."""
        rig = self.trial().fresh()
        encoder = rig.assembly.online.encoder
        copied = encoder.copy()
        texts = list(self.trial().corpus.column("text"))[:6]
        wanted = rig.encode(texts)
        rig.assembly.online = replace(rig.assembly.online, encoder=copied)
        promise(torch.equal(rig.encode(texts), wanted), "a copy gives other vectors")
        shared = {id(each) for each in encoder.parameters()} & {id(e) for e in copied.parameters()}
        frozen = {id(each) for each in encoder.parameters() if not each.requires_grad}
        promise(shared == frozen, "a copy shares other weights than those that do not train")
