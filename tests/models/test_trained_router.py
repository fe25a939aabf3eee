import numpy as np
import pytest
from flax import nnx

from triax.models.adapters import AdapterError, save_adapter
from triax.models.encoder_params import load_encoder
from triax.models.route_head import TRAINABLE, build_router, router_config
from triax.models.tokenizer import load_tokenizer
from triax.models.trained_router import (
    RouteScorer,
    TrainedRouteReader,
    question_tokens,
    shared_route_reader,
)
from triax.routing.trained import RouteReader

WORDS = ["who", "is", "the", "mother", "of", "?", "ann", "bob"]
QUESTIONS = ["who is ann ?", "who is the mother of the mother of bob ?", "who ?"]


@pytest.fixture(scope="module")
def base(make_base):
    return make_base(WORDS)


def model(base, rank):
    return build_router(load_encoder(base)[0], "mean", rank, seed=3)


def test_a_long_question_loses_its_middle(base):
    (ids,) = question_tokens(load_tokenizer(base), ["who is the mother of ann ?"], 6)
    shown = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    assert [shown[n] for n in ids] == ["[CLS]", "who", "is", "ann", "?", "[SEP]"]


def test_scores_do_not_depend_on_the_batch(base):
    graph, state = nnx.split(model(base, 2))
    scorer = RouteScorer(graph, load_tokenizer(base), 16, batch_tokens=64)
    together = scorer(state, QUESTIONS * 3)
    alone = np.concatenate([scorer(state, [text]) for text in QUESTIONS * 3])
    assert together.shape == (9, 2)
    assert np.abs(together - alone).max() < 1e-5


@pytest.mark.parametrize("rank", [2, None])
def test_what_was_saved_is_read(base, tmp_path, rank):
    """With adapters, and with every weight."""
    trained = model(base, rank)
    config = router_config(str(base), rank, pooling="mean", max_length=16, threshold=0.1)
    save_adapter(tmp_path, trained, TRAINABLE if rank else nnx.Param, config)
    reader = TrainedRouteReader(str(tmp_path))
    assert isinstance(reader, RouteReader)
    graph, state = nnx.split(trained)
    logits = RouteScorer(graph, load_tokenizer(base), 16)(state, QUESTIONS)
    wanted = 1 / (1 + np.exp(-logits))
    assert np.abs(reader.read(QUESTIONS) - wanted).max() < 2e-3  # float16 files


def test_readers_are_shared_and_other_parts_refused(base, tmp_path):
    assert shared_route_reader(str(tmp_path)) is shared_route_reader(str(tmp_path))
    save_adapter(tmp_path, model(base, 2), TRAINABLE, {"part": "span_reader"})
    with pytest.raises(AdapterError, match="expected 'router'"):
        TrainedRouteReader(str(tmp_path)).read(["who ?"])
