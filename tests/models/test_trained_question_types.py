import numpy as np
import pytest
from flax import nnx

from triax.models.adapters import AdapterError, save_adapter
from triax.models.encoder_params import load_encoder
from triax.models.question_head import TRAINABLE, build_classifier, head_config
from triax.models.question_scorer import QuestionScorer
from triax.models.tokenizer import load_tokenizer
from triax.models.trained_question_types import PART, TrainedTypeReader, shared_type_reader
from triax.records.question_types import QUESTION_TYPES
from triax.routing.trained_type import TypeReader

QUESTIONS = ["who is ann ?", "who is the mother of the mother of bob ?", "who ?"]


@pytest.fixture(scope="module")
def base(make_base):
    return make_base(["who", "is", "the", "mother", "of", "?", "ann", "bob"])


def saved(base, folder, kinds):
    model = build_classifier(load_encoder(base)[0], "mean", 2, seed=3, num_outputs=len(kinds))
    config = head_config(PART, str(base), 2, pooling="mean", max_length=16, kinds=kinds)
    save_adapter(folder, model, TRAINABLE, config)
    return model


def test_probabilities_are_a_softmax_of_the_logits(base, tmp_path):
    graph, state = nnx.split(saved(base, tmp_path, list(QUESTION_TYPES)))
    logits = QuestionScorer(graph, load_tokenizer(base), 16, 4)(state, QUESTIONS)
    odds = np.exp(logits.astype(np.float64))
    reader = TrainedTypeReader(str(tmp_path))
    assert isinstance(reader, TypeReader)
    found = reader.read(QUESTIONS)
    assert np.abs(found - odds / odds.sum(axis=1, keepdims=True)).max() < 2e-3  # float16 files
    assert shared_type_reader(str(tmp_path)) is shared_type_reader(str(tmp_path))


def test_an_adapter_of_other_types_is_refused(base, tmp_path):
    saved(base, tmp_path, ["bridge", "comparison"])
    with pytest.raises(AdapterError, match="train it again"):
        TrainedTypeReader(str(tmp_path)).read(QUESTIONS)
