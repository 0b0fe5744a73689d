"""Packed rows give what the plain padded Hugging Face model gives, and its gradients."""

import copy
import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

from cse_core.errors import CseError
from cse_defaults.transformers.attention import PACKED, _attend
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.pretrained import load_tokenizer
from cse_engine.step.dropout import Dropout, DropoutSource

LENGTHS = [24, 1, 7, 20, 11, 3, 24, 2, 1]  # 93 tokens: more than any model here has positions
SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def bert(**options):
    sizes = SIZES | NO_DROPOUT | {"max_position_embeddings": 24} | options
    return transformers.BertModel(transformers.BertConfig(**sizes), add_pooling_layer=False)


def roberta():
    sizes = SIZES | NO_DROPOUT | {"max_position_embeddings": 26, "pad_token_id": 1}
    return transformers.RobertaModel(transformers.RobertaConfig(**sizes), add_pooling_layer=False)


def electra():
    sizes = SIZES | NO_DROPOUT | {"max_position_embeddings": 24, "embedding_size": 20}
    return transformers.ElectraModel(transformers.ElectraConfig(**sizes))


def distilbert():
    sizes = {"vocab_size": 97, "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48}
    sizes |= {"max_position_embeddings": 24, "dropout": 0.0, "attention_dropout": 0.0}
    return transformers.DistilBertModel(transformers.DistilBertConfig(**sizes))


def modernbert(**options):
    special = dict.fromkeys(("cls_token_id", "bos_token_id"), 1)
    special |= dict.fromkeys(("sep_token_id", "eos_token_id"), 2) | {"pad_token_id": 0}
    windows = {"local_attention": 8, "global_attn_every_n_layers": 3}
    sizes = SIZES | special | windows | {"max_position_embeddings": 24} | options
    return transformers.ModernBertModel(transformers.ModernBertConfig(**sizes))


def albert():
    sizes = SIZES | NO_DROPOUT | {"max_position_embeddings": 24, "embedding_size": 20}
    return transformers.AlbertModel(transformers.AlbertConfig(**sizes), add_pooling_layer=False)


def mpnet(**options):
    sizes = SIZES | NO_DROPOUT | {"max_position_embeddings": 26} | options
    return transformers.MPNetModel(transformers.MPNetConfig(**sizes), add_pooling_layer=False)


PACKABLE = [bert, roberta, electra, distilbert, modernbert, albert]


def randomised(make):
    """Return the model with weights large enough for attention to matter, and a copy of it."""
    torch.manual_seed(0)
    model = make()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    return model, copy.deepcopy(model)


def rows(lengths):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, 97, (sum(lengths),), generator=generator)
    positions = torch.cat([torch.arange(length) for length in lengths])
    return ids, positions, torch.tensor([0, *lengths]).cumsum(0)


def encode(encoder, lengths, **options):
    ids, positions, offsets = rows(lengths)
    return encoder(encoder.word_embeddings(ids), positions, offsets, **options)


def padded_forward(model, lengths, **options):
    """Run the plain model on padded rows: states ``[T, H]`` of each layer, the output last."""
    return padded_states(model, rows(lengths)[0].split(lengths), **options)


def padded_states(model, texts, **options):
    """Run the plain model on texts, their ids padded: states ``[T, H]``, the output last."""
    lengths = torch.tensor([len(ids) for ids in texts])
    real = torch.arange(int(lengths.max())) < lengths[:, None]
    padded = torch.full(real.shape, model.config.pad_token_id)
    padded = padded.masked_scatter(real, torch.cat(list(texts)))
    given = {"input_ids": padded, "attention_mask": real.long()}
    given = {name: each.to(model.device) for name, each in given.items()}
    out = model(**given, output_hidden_states=True, **options)
    real = real.to(model.device)
    return [*(states[real] for states in out.hidden_states[:-1]), out.last_hidden_state[real]]


def close(a: Tensor, b: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def close_gradients(ours, theirs):
    """Compare the gradients of two models, each by its largest entry; return how many there are."""
    both = zip(ours.named_parameters(), theirs.parameters(), strict=True)
    both = [(name, one.grad, other.grad) for (name, one), other in both]
    for name, one, other in both:
        assert (one is None) == (other is None), name
        if other is not None:
            scale = other.abs().max().clamp(min=1.0)
            close(one / scale, other / scale)
    return sum(other is not None for _, _, other in both)


@pytest.mark.parametrize("make", [*PACKABLE, mpnet])
def test_output_and_layers_equal_the_padded_model(make):
    model, plain = randomised(make)
    encoder = PackedEncoder(model.eval())
    assert encoder.packed == (make is not mpnet)
    for lengths in (LENGTHS, [13], [1], [5, 5, 5]):
        hidden = encode(encoder, lengths, layers=range(encoder.layer_count + 1))
        expected = padded_forward(plain.eval(), lengths)
        close(hidden.last, expected[-1])
        assert sorted(hidden.layers) == [0, 1, 2, 3]
        for layer, states in hidden.layers.items():
            close(states, expected[layer])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("make", [*PACKABLE, mpnet])
def test_gradients_equal_the_padded_model(make, training):
    model, plain = randomised(make)
    encoder = PackedEncoder(model).train(training)
    DropoutSource().serve(encoder)
    for module in encoder.modules():  # rounds to no dropout, but takes the way of dropout
        if isinstance(module, Dropout):
            module.p = 1e-9
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 1e-9
    weight = torch.randn(sum(LENGTHS), 32, generator=torch.Generator().manual_seed(2))
    ids, positions, offsets = rows(LENGTHS)
    words = encoder.word_embeddings(ids)
    words.retain_grad()
    hidden = encoder(words, positions, offsets, layers=[1])
    ((hidden.last + hidden.layers[1]) * weight).sum().backward()
    states = padded_forward(plain.train(training), LENGTHS)
    ((states[-1] + states[1]) * weight).sum().backward()
    assert close_gradients(encoder.model, plain) >= 15
    table = torch.zeros_like(plain.get_input_embeddings().weight).index_add(0, ids, words.grad)
    pad = plain.get_input_embeddings().padding_idx
    theirs = plain.get_input_embeddings().weight.grad
    scale = theirs.abs().max()
    keep = torch.arange(97) != pad
    close(table[keep] / scale, theirs[keep] / scale)


@pytest.mark.parametrize("make", [*PACKABLE, mpnet])
def test_one_token_a_row_is_read_as_if_all_were(make):
    encoder = PackedEncoder(randomised(make)[0].eval())
    whole = PackedEncoder(randomised(make)[0].eval(), attention="padded")
    offsets = rows(LENGTHS)[2]
    read = offsets[:-1] + torch.tensor(LENGTHS) // 2
    weight = torch.randn(len(LENGTHS), 32, generator=torch.Generator().manual_seed(2))
    alone = encode(encoder, LENGTHS, read=read, layers=[0, 2], on_input=lambda x: x * 0.5)
    full = encode(whole, LENGTHS, read=read, on_input=lambda x: x * 0.5)
    assert not full.selected_only
    assert alone.selected_only == (make not in (modernbert, mpnet))
    close(alone.at(read), full.at(read))
    (alone.at(read) * weight).sum().backward()
    (full.at(read) * weight).sum().backward()
    assert close_gradients(encoder, whole)


@pytest.mark.parametrize("make", [bert, electra, distilbert, modernbert, albert, mpnet])
def test_on_input_sees_and_replaces_what_enters_the_first_layer(make):
    model, plain = randomised(make)
    encoder = PackedEncoder(model.eval())
    seen = []

    def cut(states):
        seen.append(states)
        return states * (torch.arange(32) % 5 > 0)

    changed = encode(encoder, LENGTHS, on_input=cut, layers=[0])
    assert len(seen) == 1
    close(seen[0], padded_forward(plain.eval(), LENGTHS)[0])
    close(changed.layers[0], cut(seen[0]))
    assert (changed.last - encode(encoder, LENGTHS).last).abs().max() > 1e-2
    unchanged = encode(encoder, LENGTHS, on_input=lambda states: states * 1.0)
    close(unchanged.last, encode(encoder, LENGTHS).last)
    first = int(torch.tensor(LENGTHS[:3]).sum())
    alone = encode(
        encoder, LENGTHS, on_input=lambda states: torch.cat([states[:first], states[first:] * 0.5])
    )
    close(alone.last[:first], unchanged.last[:first])  # rows do not see each other


@pytest.mark.parametrize("make", [bert, modernbert, mpnet])
def test_permuted_positions_are_the_permuted_row(make):
    model, _ = randomised(make)
    encoder = PackedEncoder(model.eval())
    ids, positions, offsets = rows([24, 9])
    order = torch.cat([torch.randperm(24), 24 + torch.randperm(9)])
    words = encoder.word_embeddings(ids)
    straight = encoder(words, positions, offsets, layers=[1])
    permuted = encoder(words[order], positions[order], offsets, layers=[1])
    close(permuted.last, straight.last[order])
    close(permuted.layers[1], straight.layers[1][order])


@pytest.mark.parametrize("make", [bert, roberta, modernbert, mpnet])
def test_places_that_are_left_out_are_padding_inside_the_row(make):
    """As if the model had a row with other tokens there, which no attention sees."""
    options = {"local_attention": 64} if make is modernbert else {}  # a window counts tokens
    model, plain = randomised(partial(make, **options))
    encoder = PackedEncoder(model.eval())
    ids, positions, offsets = rows([14, 5])
    kept = torch.tensor([0, 1, 2, 9, 11, 13, 14, 15, 16, 18])
    words = encoder.word_embeddings(ids)[kept]
    found = encoder(words, positions[kept], torch.tensor([0, 6, 10])).last
    real = torch.zeros(2, 14, dtype=torch.bool)
    real.view(-1)[kept] = True
    filled = torch.full(real.shape, 3).masked_scatter(real, ids[kept])
    close(found, plain.eval()(input_ids=filled, attention_mask=real.long())[0][real])


@pytest.mark.parametrize("make", [bert, modernbert])
def test_bf16_stays_within_its_precision(make):
    model, plain = randomised(make)
    for parameter in [*model.parameters(), *plain.parameters()]:
        parameter.data *= 0.4
    encoder = PackedEncoder(model.eval())
    exact = padded_forward(plain.eval(), LENGTHS)[-1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        packed = encode(encoder, LENGTHS).last.float()
        padded = padded_forward(plain, LENGTHS)[-1].float()
    error = (packed - exact).norm() / exact.norm()
    assert 0 < error < 0.02
    assert error < 1.5 * (padded - exact).norm() / exact.norm()


@pytest.mark.parametrize("family", ["EuroBert", "NomicBert", "Gte", "JinaEmbeddingsV3", "Esm"])
@pytest.mark.parametrize("training", [False, True])
def test_rotary_families_take_bf16(family, training):
    """Their queries and keys leave the rotation in fp32, beside values in bf16."""
    special = {"pad_token_id": 1 if family in ("JinaEmbeddingsV3", "Esm") else 0}
    if family == "EuroBert":
        special |= {"num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2}
    if family == "Esm":
        special |= {"mask_token_id": 3, "position_embedding_type": "rotary"}
    config = getattr(transformers, f"{family}Config")(
        **SIZES, **special, max_position_embeddings=64
    )
    model = getattr(transformers, f"{family}Model")(config)
    encoder = PackedEncoder(model).train(training)
    (source := DropoutSource()).serve(encoder)
    exact = encode(encoder, LENGTHS).last
    source.seed(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        last = encode(encoder, LENGTHS).last
    last.float().sum().backward()
    assert encoder.packed
    if not training:
        assert (last.float() - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("make", [bert, mpnet, modernbert])
def test_dropout_draws_from_the_source_alone(make):
    chance = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
    if make is modernbert:
        chance = dict.fromkeys(("attention_dropout", "mlp_dropout", "embedding_dropout"), 0.2)
    encoder = PackedEncoder(randomised(lambda: make(**chance))[0]).train()
    source = DropoutSource()
    source.serve(encoder)
    drawing = [m for m in encoder.modules() if isinstance(m, Dropout) and m.source is source]
    assert len(drawing) >= 7
    outputs = []
    for seed in (3, 3, 4):
        torch.rand(7)
        source.seed(seed)
        outputs.append(encode(encoder, LENGTHS).last)
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.allclose(outputs[0], outputs[2])
    close(encode(encoder.eval(), LENGTHS).last, encode(encoder, LENGTHS).last)


def test_attention_dropout_keeps_the_expectation():
    torch.manual_seed(0)
    one = torch.randn(3, 1, 6, 4, 8)
    bias = torch.zeros(1, 1, 1, 4).index_fill_(3, torch.tensor([3]), -torch.inf)
    exact = _attend(*one, bias, 0.3, 0.0, None)
    many = (each.expand(4000, -1, -1, -1) for each in one)
    draws = _attend(*many, bias, 0.3, 0.3, DropoutSource())
    assert draws.std(0).min() > 0.05
    assert (draws.mean(0) - exact).norm() / exact.norm() < 0.03


def test_a_copy_works_by_itself_and_is_saved_as_a_plain_model(tmp_path):
    model, plain = randomised(bert)
    encoder = PackedEncoder(model.eval())
    twin = copy.deepcopy(encoder)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(0.5)
    close(encode(encoder, LENGTHS).last, padded_forward(plain.eval(), LENGTHS)[-1])
    assert not torch.allclose(encode(twin, LENGTHS).last, encode(encoder, LENGTHS).last)
    encoder.model.save_pretrained(tmp_path)
    assert PACKED not in (tmp_path / "config.json").read_text()
    again = transformers.AutoModel.from_pretrained(tmp_path, add_pooling_layer=False)
    close(padded_forward(again, LENGTHS)[-1], encode(encoder, LENGTHS).last)


def test_padding_by_request_and_the_last_layer():
    model, plain = randomised(bert)
    encoder = PackedEncoder(model.eval(), attention="padded")
    assert not encoder.packed and encoder.why_padded == "padding was requested"
    close(encode(encoder, LENGTHS).last, padded_forward(plain.eval(), LENGTHS)[-1])
    assert PackedEncoder(randomised(bert)[0]).why_padded is None
    assert "attention interface" in (PackedEncoder(mpnet()).why_padded or "")
    with pytest.raises(CseError, match="cannot be packed"):
        PackedEncoder(mpnet(), attention="packed")
    encoder = PackedEncoder(randomised(bert)[0].eval())
    offsets = rows(LENGTHS)[2]
    assert not encode(encoder, LENGTHS, read=offsets[:-1], layers=[3]).selected_only
    assert not encode(encoder, LENGTHS).selected_only
    read = torch.tensor([0, 3])
    assert not encode(encoder, [3, 0], read=read).selected_only  # an empty row has nothing to read


def test_deberta_computes_in_fp32():
    sizes = SIZES | NO_DROPOUT | {"pos_att_type": ["c2p", "p2c"], "relative_attention": True}
    encoder = PackedEncoder(transformers.DebertaModel(transformers.DebertaConfig(**sizes)).eval())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        last = encode(encoder, LENGTHS).last
    close(last, encode(encoder, LENGTHS).last)


def test_what_is_refused():
    t5 = transformers.T5Config(vocab_size=97, d_model=32, d_kv=8, num_heads=4, num_layers=1)
    with pytest.raises(CseError, match="encoder with a decoder"):
        PackedEncoder(transformers.T5Model(t5))
    vit = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    with pytest.raises(CseError, match="word embeddings"):
        PackedEncoder(transformers.ViTModel(vit))
    convolution = transformers.ConvBertConfig(**SIZES, embedding_size=32)
    with pytest.raises(CseError, match="ConvBertModel reads the padding"):
        PackedEncoder(randomised(lambda: transformers.ConvBertModel(convolution))[0])
    encoder = PackedEncoder(randomised(mpnet)[0])
    ids, positions, offsets = rows([4, 3])
    with pytest.raises(ValueError, match="positions of a row"):
        encoder(encoder.word_embeddings(ids), positions.clamp(max=2), offsets)


def test_bounds():
    encoder = PackedEncoder(roberta())
    assert encoder.max_positions == 24
    assert (encoder.hidden_size, encoder.embedding_size) == (32, 32)
    assert PackedEncoder(electra()).embedding_size == 20
    with pytest.raises(ValueError, match="row of 25"):
        encode(encoder, [3, 25])
    with pytest.raises(ValueError, match="no layer 4"):
        encode(encoder, [3], layers=[4])
    nothing = encoder(torch.zeros(0, 32), torch.zeros(0).long(), torch.tensor([0]), layers=[1])
    assert nothing.last.shape == nothing.layers[1].shape == (0, 32)
    ids, positions, _ = rows([4, 3])
    words = encoder.word_embeddings(ids)
    with_empty = encoder(words, positions, torch.tensor([0, 4, 4, 7])).last
    close(with_empty, encode(encoder, [4, 3]).last)


def test_load_from_scratch_and_dropout(starter_copy):
    edit(starter_copy, dtype="bfloat16")
    first, second, other = (
        PackedEncoder.load(starter_copy, from_scratch=True, seed=seed).state_dict()
        for seed in (1, 1, 2)
    )
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)
    assert {each.dtype for each in first.values()} == {torch.float32}
    state = torch.get_rng_state()
    encoder = PackedEncoder.load(starter_copy, dropout=0.3, seed=0)
    assert torch.equal(torch.get_rng_state(), state)
    assert {m.p for m in encoder.modules() if isinstance(m, torch.nn.Dropout)} == {0.3}


def edit(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


DAMAGES = {
    "no folder of this name": shutil.rmtree,
    "without config.json": lambda f: (f / "config.json").unlink(),
    "no weights": lambda f: (f / "model.safetensors").unlink(),
    "cut short": lambda f: os.truncate(f / "model.safetensors", 100_000),
    "pickled": lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
    "has another shape": lambda f: edit(f, intermediate_size=7),
    "is missing": lambda f: edit(f, num_hidden_layers=9),
    "not a valid JSON": lambda f: (f / "config.json").write_text("{"),
    "custom code": lambda f: edit(
        f, model_type="own", auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"}
    ),
    "does not recognize": lambda f: edit(f, model_type="unheard-of"),
}


def test_load_says_what_is_wrong_with_a_folder(starter_copy, tmp_path):
    for message, damage in DAMAGES.items():
        damaged = Path(shutil.copytree(starter_copy, tmp_path / message.replace(" ", "-")))
        damage(damaged)
        with pytest.raises(CseError, match=message) as raised:
            PackedEncoder.load(damaged, seed=0)
        assert raised.value.where == "model.name"
        assert "\n" not in str(raised.value)
    (starter_copy / "tokenizer.json").write_text("{")
    with pytest.raises(CseError, match="tokenizer"):
        load_tokenizer(starter_copy)
    (starter_copy / "tokenizer.json").unlink()
    (starter_copy / "vocab.txt").unlink()
    with pytest.raises(CseError, match="no tokenizer in the folder"):
        load_tokenizer(starter_copy)


@pytest.mark.parametrize("make", [bert, roberta, electra, distilbert, albert])
def test_only_the_first_layers_are_left(make):
    encoder = PackedEncoder(make().eval())
    whole = encode(encoder, LENGTHS, layers=[0, 2])
    encoder.drop_layers(2)
    left = encode(encoder, LENGTHS, layers=[0, 2])
    assert encoder.layer_count == 2 and len(encoder.layers()) in (1, 2)  # ALBERT has one of its own
    assert torch.equal(left.last, whole.layers[2]) and torch.equal(left.layers[0], whole.layers[0])
