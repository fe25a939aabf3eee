import os
import re
import subprocess
import sys

import numpy as np
import pytest
from flax import nnx

from triax.models.constraint import Matcher, compile_regex, matcher_vocabulary
from triax.models.decoder import Decoder, DecoderConfig
from triax.models.decoder_params import load_decoder
from triax.models.generate import Generator, Prompt, batch_bucket, slots_bucket

EOS = 256
WIDTH = 260
TOKENS = [bytes([byte]) for byte in range(256)] + [b""]
LINE = r"[a-z]+ \| [a-z]+ \| [a-z]+"
TRIPLETS = LINE + r"(?:\n" + LINE + "){0,3}"


@pytest.fixture(scope="module")
def generator() -> Generator:
    config = DecoderConfig(WIDTH, 64, 128, 2, 4, 2, 16, tie_embeddings=True)
    decoder = nnx.jit(lambda: Decoder(config, rngs=nnx.Rngs(0)))()
    return Generator(decoder, [EOS])


def prompt(text: str, max_tokens: int = 8, **more) -> Prompt:
    return Prompt(tuple(text.encode()), max_tokens, **more)


def text_of(output) -> str:
    return bytes(output.ids).decode("utf-8")


def test_greedy_equals_torch(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,  # logits far apart, so that rounding decides nothing
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    oracle = transformers.LlamaForCausalLM(config).eval()
    oracle.save_pretrained(tmp_path)
    generator = Generator(load_decoder(tmp_path)[0], [EOS])

    rng = np.random.default_rng(0)
    shared = tuple(rng.integers(1, 255, 150).tolist())
    for prefix, lengths in [((), (3, 70, 21)), (shared, (1, 9, 80)), (shared, (5, 2, 6))]:
        rows = [prefix + tuple(rng.integers(1, 255, length).tolist()) for length in lengths]
        longest = max(map(len, rows))
        ids = torch.tensor([[0] * (longest - len(row)) + list(row) for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        expected = oracle.generate(
            ids, attention_mask=mask, max_new_tokens=12, do_sample=False, pad_token_id=0
        )[:, longest:]
        found = generator.generate([Prompt(row, 12) for row in rows])
        assert [list(output.ids) for output in found] == expected.tolist()
        assert not any(output.is_finished for output in found)
    assert len(generator._prefixes) == 1  # read once for both batches that begin with it

    alone = generator.generate([Prompt(rows[1], 12)])
    assert alone == found[1:2]


def test_sample_does_not_depend_on_the_batch(generator):
    rows = [prompt(text, temperature=1.0, seed=seed) for seed, text in enumerate(["ab", "cd", "x"])]
    together = generator.generate(rows)
    assert [generator.generate([row])[0] for row in rows] == together
    assert generator.generate(rows[::-1]) == together[::-1]
    other = generator.generate([prompt("ab", temperature=1.0, seed=7)])
    assert other[0].ids != together[0].ids


def test_greedy_and_sampled_rows_mix(generator):
    greedy, drawn = prompt("ab"), prompt("ab", temperature=1.0, seed=3)
    mixed = generator.generate([greedy, drawn])
    assert mixed == [generator.generate([greedy])[0], generator.generate([drawn])[0]]
    assert mixed[0].ids != mixed[1].ids


def test_limits_are_each_rows_own(generator):
    outputs = generator.generate([prompt("ab", 3), prompt("cd", 0), prompt("ef", 7)])
    assert [len(output.ids) for output in outputs] == [3, 0, 7]
    assert not any(output.is_finished for output in outputs)


def test_end_token_ends_a_row(generator):
    free = generator.generate([prompt("ab", 12)])[0]
    end = free.ids[5]
    stopping = Generator(nnx.merge(generator._graph.definition, generator._weights), [EOS, end])
    output = stopping.generate([prompt("ab", 12)])[0]
    assert output.ids == free.ids[: free.ids.index(end)]
    assert output.is_finished


def test_stop_check_ends_a_row_soon(generator):
    seen = []

    def stops(ids):
        seen.append(len(ids))
        return len(ids) >= 16

    watched, other = generator.generate(
        [prompt("ab", 60, is_stopped=stops), prompt("cd", 40)],
    )
    assert len(watched.ids) == 16 and watched.is_finished
    assert len(other.ids) == 40
    assert seen == [16]


def test_grammar_holds_and_closes_within_the_limit(generator):
    table = compile_regex(TRIPLETS, TOKENS, WIDTH)
    rows = [
        prompt("ab", 9 + 2 * seed, temperature=1.0, seed=seed, table=table) for seed in range(16)
    ]
    outputs = generator.generate(rows)
    assert all(re.fullmatch(TRIPLETS, text_of(output)) for output in outputs)
    assert all(len(output.ids) <= row.max_tokens for output, row in zip(outputs, rows))
    free = generator.generate(
        [prompt("ab", row.max_tokens, temperature=1.0, seed=row.seed) for row in rows]
    )
    assert not any(re.fullmatch(TRIPLETS, "".join(map(chr, output.ids))) for output in free)


def test_exhausted_grammar_needs_no_end_token(generator):
    table = compile_regex("yes|no", TOKENS, WIDTH)
    output = generator.generate([prompt("ab", 50, table=table)])[0]
    assert text_of(output) in ("yes", "no")
    assert output.is_finished


def test_rows_with_tables_matchers_and_neither_share_a_batch(generator):
    vocabulary = matcher_vocabulary(TOKENS, str.encode, [EOS], WIDTH)
    table = compile_regex(TRIPLETS, TOKENS, WIDTH)
    free = prompt("ab", 12)
    tabled = prompt("cd", 12, table=table)

    def matched() -> Prompt:
        return prompt("ef", 12, matcher=Matcher(vocabulary, "start: /[0-9]{3}/ | /[0-9]{9}/"))

    outputs = generator.generate([free, tabled, matched()])
    assert outputs == [generator.generate([row])[0] for row in (free, tabled, matched())]
    assert text_of(outputs[2]).isdigit() and len(outputs[2].ids) in (3, 9)
    cut = Prompt(tuple(b"ef"), 7, matcher=Matcher(vocabulary, "start: /[0-9]{3}([a-z]{9})?/"))
    output = generator.generate([cut])[0]
    assert len(output.ids) == 3  # the longest beginning that is whole


def test_grammar_that_cannot_fit_is_refused(generator):
    table = compile_regex("[0-9]{9}", TOKENS, WIDTH)
    with pytest.raises(ValueError, match="needs at least 9; raise max_tokens"):
        generator.generate([prompt("ab", 8, table=table)])
    with pytest.raises(ValueError, match="no tokens"):
        generator.generate([Prompt((), 4)])
    assert generator.generate([]) == []


def test_one_compilation_serves_all_calls(generator):
    from triax.models import decoding

    generator.generate([prompt("warm", 4)])
    before = decoding.write._cache_size(), decoding.read_piece._cache_size()
    table = compile_regex(TRIPLETS, TOKENS, WIDTH)
    generator.generate([prompt("a longer one" * 9, 21, temperature=0.7, seed=5, table=table)])
    generator.generate([prompt("another", 3)])
    assert (decoding.write._cache_size(), decoding.read_piece._cache_size()) == before


@pytest.mark.parametrize(("size", "bucket"), [(1, 1), (2, 4), (4, 4), (5, 8), (9, 16)])
def test_batch_buckets(size, bucket):
    assert batch_bucket(size) == bucket


@pytest.mark.parametrize(("size", "bucket"), [(1, 512), (512, 512), (513, 1024), (2049, 4096)])
def test_slots_buckets(size, bucket):
    assert slots_bucket(size) == bucket


ON_TWO_DEVICES = """
import jax
from flax import nnx
from triax.models.decoder import Decoder, DecoderConfig
from triax.models.generate import Generator, Prompt

mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
config = DecoderConfig(260, 64, 128, 1, 4, 2, 16, tie_embeddings=True)
decoder = nnx.jit(lambda: Decoder(config, rngs=nnx.Rngs(0)))()
start = tuple(range(1, 100))
rows = [Prompt(start + (n,) * n, 6, temperature=n % 2, seed=n) for n in range(1, 5)]
one = Generator(decoder, [256]).generate(rows)
assert Generator(decoder, [256], mesh=mesh).generate(rows) == one
assert any(output.ids for output in one)
"""


def test_rows_spread_over_a_mesh():
    # The number of CPU devices is fixed once jax has started.
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", ON_TWO_DEVICES], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
