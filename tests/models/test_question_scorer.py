import numpy as np
import pytest
from flax import nnx

from triax.models.adapters import AdapterError, save_adapter
from triax.models.encoder_params import load_encoder
from triax.models.question_head import TRAINABLE, build_classifier, head_config
from triax.models.question_scorer import QuestionScorer, TrainedQuestionHead, question_tokens
from triax.models.tokenizer import load_tokenizer

WORDS = ["who", "is", "the", "mother", "of", "?", "ann", "bob"]
QUESTIONS = ["who is ann ?", "who is the mother of the mother of bob ?", "who ?"]


@pytest.fixture(scope="module")
def base(make_base):
    return make_base(WORDS)


def model(base, rank, num_outputs):
    return build_classifier(load_encoder(base)[0], "mean", rank, seed=3, num_outputs=num_outputs)


def test_a_long_question_loses_its_middle(base):
    (ids,) = question_tokens(load_tokenizer(base), ["who is the mother of ann ?"], 6)
    shown = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    assert [shown[n] for n in ids] == ["[CLS]", "who", "is", "ann", "?", "[SEP]"]


@pytest.mark.parametrize("num_outputs", [2, 4])
def test_scores_do_not_depend_on_the_batch(base, num_outputs):
    graph, state = nnx.split(model(base, 2, num_outputs))
    scorer = QuestionScorer(graph, load_tokenizer(base), 16, num_outputs, batch_tokens=64)
    together = scorer(state, QUESTIONS * 3)
    alone = np.concatenate([scorer(state, [text]) for text in QUESTIONS * 3])
    assert together.shape == (9, num_outputs)
    assert np.abs(together - alone).max() < 1e-5
    assert scorer(state, []).shape == (0, num_outputs)


@pytest.mark.parametrize(("rank", "num_outputs"), [(2, 4), (None, 2)])
def test_what_was_saved_is_read(base, tmp_path, rank, num_outputs):
    """With adapters, and with every weight."""
    trained = model(base, rank, num_outputs)
    config = head_config("toy", str(base), rank, pooling="mean", max_length=16)
    save_adapter(tmp_path, trained, TRAINABLE if rank else nnx.Param, config)
    head = TrainedQuestionHead(str(tmp_path), "toy", num_outputs)
    graph, state = nnx.split(trained)
    wanted = QuestionScorer(graph, load_tokenizer(base), 16, num_outputs)(state, QUESTIONS)
    assert np.abs(head.logits(QUESTIONS) - wanted).max() < 1e-2  # float16 files
    assert head.config["rank"] == rank
    with pytest.raises(AdapterError, match="expected 'router'"):
        TrainedQuestionHead(str(tmp_path), "router").logits(["who ?"])
    with pytest.raises(AdapterError, match="classifier"):
        TrainedQuestionHead(str(tmp_path), "toy", num_outputs + 1).logits(["who ?"])
