import numpy as np
import pytest

from triax.models.reading_answers import Best, Calibration, best_answer, calibrated, fit_logistic
from triax.models.reading_windows import Window
from triax.records.readings import Reading

PASSAGE = "Ann met Bob"
WINDOW = Window([2, 5, 3, 6, 7, 8, 3], 3, [(0, 3), (4, 7), (8, 11)])


def scores(start, end, none=0.0, yes=-9.0, no=-9.0):
    """Scores of the three words, and of the verdicts, for both ends."""
    low = np.finfo(np.float32).min
    head = [none, low, low]
    return (
        np.array([*head, *start, low, yes, no], np.float32),
        np.array([*head, *end, low, yes, no], np.float32),
    )


def test_the_best_of_all_passages_is_taken_with_its_characters():
    passages = [PASSAGE, PASSAGE]
    windows = [(0, WINDOW), (1, WINDOW)]
    found = best_answer(
        passages, windows, [scores([1, -5, -5], [1, -5, -5]), scores([-5, -5, 3], [-5, -5, 3])]
    )
    reading = found.reading
    assert (reading.text, reading.passage, reading.start, reading.end) == ("Bob", 1, 8, 11)
    assert reading.margin == 6.0
    assert found.lead == 4.0  # Ann has a margin of 2


def test_the_same_answer_elsewhere_is_no_rival():
    windows = [(0, WINDOW), (1, WINDOW)]
    each = scores([-5, -5, 3], [-5, -5, 3])
    found = best_answer([PASSAGE, PASSAGE], windows, [each, each])
    assert found.lead > 4.0


def test_verdicts_only_where_they_are_allowed():
    each = scores([1, -5, -5], [1, -5, -5], yes=4.0)
    assert best_answer([PASSAGE], [(0, WINDOW)], [each]).reading.text == "Ann"
    found = best_answer([PASSAGE], [(0, WINDOW)], [each], allows_verdicts=True).reading
    assert (found.text, found.kind) == ("yes", "yes")


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
