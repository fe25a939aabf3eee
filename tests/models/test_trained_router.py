import numpy as np
import pytest
from flax import nnx

from triax.models.adapters import AdapterError, save_adapter
from triax.models.encoder_params import load_encoder
from triax.models.question_head import TRAINABLE, build_classifier, head_config
from triax.models.question_scorer import QuestionScorer
from triax.models.tokenizer import load_tokenizer
from triax.models.trained_router import PART, TrainedRouteReader, shared_route_reader
from triax.routing.trained import RouteReader

WORDS = ["who", "is", "the", "mother", "of", "?", "ann", "bob"]
QUESTIONS = ["who is ann ?", "who is the mother of the mother of bob ?", "who ?"]


@pytest.fixture(scope="module")
def base(make_base):
    return make_base(WORDS)


def model(base):
    return build_classifier(load_encoder(base)[0], "mean", 2, seed=3)


def test_each_side_has_a_sigmoid_of_its_own(base, tmp_path):
    trained = model(base)
    config = head_config(PART, str(base), 2, pooling="mean", max_length=16, threshold=0.1)
    save_adapter(tmp_path, trained, TRAINABLE, config)
    reader = TrainedRouteReader(str(tmp_path))
    assert isinstance(reader, RouteReader)
    graph, state = nnx.split(trained)
    logits = QuestionScorer(graph, load_tokenizer(base), 16)(state, QUESTIONS)
    wanted = 1 / (1 + np.exp(-logits))
    assert np.abs(reader.read(QUESTIONS) - wanted).max() < 2e-3  # float16 files
    assert (reader.folder, reader.config["threshold"]) == (tmp_path, 0.1)


def test_readers_are_shared_and_other_parts_refused(base, tmp_path):
    assert shared_route_reader(str(tmp_path)) is shared_route_reader(str(tmp_path))
    save_adapter(tmp_path, model(base), TRAINABLE, {"part": "span_reader"})
    with pytest.raises(AdapterError, match="expected 'router'"):
        TrainedRouteReader(str(tmp_path)).read(["who ?"])
