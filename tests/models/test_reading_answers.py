import numpy as np
import pytest

from triax.models.reading_answers import Best, Calibration, best_answer, calibrated, fit_logistic
from triax.models.reading_scores import RowScores
from triax.models.reading_windows import Window
from triax.records.readings import Reading

PASSAGE = "Ann met Bob"
WINDOW = Window([2, 5, 3, 6, 7, 8, 3], 3, [(0, 3), (4, 7), (8, 11)])


def scores(*spans, none=0.0, yes=-9.0, no=-9.0):
    """Scores of the verdicts, and (word, last word, score) of spans, best first."""
    first, last, values = zip(*spans)
    return RowScores(
        np.array([none, yes, no], np.float32),
        np.array(values, np.float32),
        np.array(first, np.int32) + 3,
        np.array(last, np.int32) + 3,
    )


def test_the_best_of_all_passages_is_taken_with_its_characters():
    windows = [(0, WINDOW), (1, WINDOW)]
    found = best_answer(
        [PASSAGE, PASSAGE], windows, [scores((0, 0, 2.0)), scores((2, 2, 6.0), (1, 2, 1.0))]
    )
    reading = found.reading
    assert (reading.text, reading.passage, reading.start, reading.end) == ("Bob", 1, 8, 11)
    assert reading.margin == 6.0
    assert found.lead == pytest.approx(6.0 - np.log(np.exp(2.0) + np.exp(1.0)))


def test_mentions_of_one_answer_add_up():
    windows = [(0, WINDOW), (1, WINDOW)]
    rows = [scores((0, 0, 1.5), (2, 2, 1.0)), scores((2, 2, 1.2), none=0.5)]
    found = best_answer([PASSAGE, PASSAGE], windows, rows)
    assert (found.reading.text, found.reading.passage) == ("Bob", 0)
    assert found.reading.margin == pytest.approx(np.log(np.exp(1.0) + np.exp(0.7)))
    assert found.lead == pytest.approx(found.reading.margin - 1.5)


def test_an_answer_without_rivals_leads_as_far_as_can_be():
    found = best_answer([PASSAGE], [(0, WINDOW)], [scores((2, 2, 1.0))])
    assert found.lead == 20.0


def test_verdicts_only_where_they_are_allowed():
    row = scores((0, 0, 2.0), yes=4.0)
    assert best_answer([PASSAGE], [(0, WINDOW)], [row]).reading.text == "Ann"
    found = best_answer([PASSAGE], [(0, WINDOW)], [row], allows_verdicts=True).reading
    assert (found.text, found.kind) == ("yes", "yes")
    row = scores((0, 0, 9.0), yes=4.0)
    found = best_answer([PASSAGE], [(0, WINDOW)], [row], allows_verdicts=True, allows_spans=False)
    assert found.reading.kind == "yes" and found.lead > 0


def test_nothing_in_an_empty_passage():
    assert best_answer([], [], []) is None


def test_logistic_regression_has_the_optimum_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(200), rng.standard_normal((200, 2))])
    y = (rng.random(200) < 1 / (1 + np.exp(-(x @ [0.3, 1.5, -0.7])))).astype(float)
    ours = fit_logistic(x, y, penalty=1e-3)
    weights = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, tolerance_grad=1e-12)
    inputs, targets = torch.tensor(x), torch.tensor(y)

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(inputs @ weights, targets)
        loss = loss + 0.5e-3 * (weights**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert np.abs(np.array(ours) - weights.detach().numpy()).max() < 1e-5


def test_calibration_is_a_logistic_of_margin_and_lead():
    best = Best(Reading("a", 0, 0, 1, 2.0, 0.0, 0.0), 1.0)
    reading = calibrated(best, Calibration((0.5, 1.0, -0.5), (0.0, 0.0, 0.0)))
    assert reading.p_right == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert reading.p_here == 0.5
    wild = Best(Reading("a", 0, 0, 1, 1e9, 0.0, 0.0), 1e9)
    assert wild.features == (1.0, 20.0, 20.0)


def test_calibration_survives_json():
    one = Calibration((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert Calibration.from_json(one.to_json()) == one
    assert Calibration.from_json(None) == Calibration()
