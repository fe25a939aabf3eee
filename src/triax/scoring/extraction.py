"""How good extracted triplets are: exact and soft matches, and the answers found in them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from triax.scoring.answers import normalize_answer

Fields = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Match:
    """Sums of one text: of the best scores over what was said, and over what is true.

    For exact matches both are the same whole number.
    """

    precision_sum: float
    num_said: int
    recall_sum: float
    num_true: int


def exact_match(said: Sequence[Fields], true: Sequence[Sequence[Fields]]) -> Match:
    """Triplets whose three fields are the same after `normalize_answer`.

    Args:
        said: extracted triplets; repeated ones count once.
        true: for each true triplet all forms of it, such as those with other names of an entity.
    """
    given = {_normalised(fields) for fields in said}
    forms = [{_normalised(fields) for fields in one} for one in true]
    hits = sum(bool(one & given) for one in forms)
    allowed = set().union(*forms) if forms else set()
    return Match(float(len(given & allowed)), len(given), float(hits), len(forms))


def soft_match(said: Sequence[Fields], true: Sequence[Sequence[Fields]]) -> Match:
    """Token overlap, after CaRB (Bhardwaj et al. 2019, section 3).

    Words are those of `normalize_answer`, as bags, field by field. For a said triplet s and a true
    one t, precision is the share of s's words that t has in the same field, all fields together,
    and recall the share of t's words that s has. As in CaRB, a pair counts only if the predicates
    share a word (here: or the predicate of either has no word left), precision is matched one to
    one, greedily, the highest precision first, and each said triplet contributes its match's
    precision or 0; recall is many to one: each true triplet contributes the highest recall over
    all said ones. Unlike CaRB's script we use no lemmas and no confidence threshold.

    Args:
        said: extracted triplets.
        true: for each true triplet all its forms; the best one counts.
    """
    given = [_bags(fields) for fields in dict.fromkeys(said)]
    gold = [[_bags(fields) for fields in one] for one in true]
    precision = np.zeros((len(given), len(gold)))
    recall = np.zeros_like(precision)
    for row, bags in enumerate(given):
        for column, forms in enumerate(gold):
            pairs = [_overlap(bags, form) for form in forms]
            precision[row, column] = max((one for one, _ in pairs), default=0.0)
            recall[row, column] = max((one for _, one in pairs), default=0.0)
    best_recall = float(recall.max(axis=0).sum()) if given and gold else 0.0
    return Match(_one_to_one(precision), len(given), best_recall, len(gold))


def pairs_match(said: Sequence[Fields], true: Sequence[Sequence[Fields]]) -> Match:
    """Exact match of subject and object alone, whatever the predicate is."""
    drop = [(subject, "", other) for subject, _, other in said]
    forms = [[(subject, "", other) for subject, _, other in one] for one in true]
    return exact_match(drop, forms)


def precision_recall_f1(matches: Iterable[Match]) -> tuple[float, float, float]:
    """Micro averages over texts; 0 where nothing was said, or nothing is true."""
    matches = list(matches)
    num_said = sum(one.num_said for one in matches)
    num_true = sum(one.num_true for one in matches)
    precision = sum(one.precision_sum for one in matches) / num_said if num_said else 0.0
    recall = sum(one.recall_sum for one in matches) / num_true if num_true else 0.0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


def f1_interval(
    matches: Sequence[Match], confidence: float = 0.95, num_resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap percentile interval of the micro F1, texts drawn with replacement.

    Raises:
        ValueError: there are no texts.
    """
    if not matches:
        raise ValueError("no texts to resample; score at least one")
    sums = np.array(
        [[m.precision_sum, m.num_said, m.recall_sum, m.num_true] for m in matches], float
    )
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, len(sums), (num_resamples, len(sums)))
    hit, said, found, true = sums[drawn].sum(axis=1).T
    precision = np.divide(hit, said, out=np.zeros_like(hit), where=said > 0)
    recall = np.divide(found, true, out=np.zeros_like(hit), where=true > 0)
    total = precision + recall
    f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(hit), where=total > 0)
    tail = (1 - confidence) / 2
    low, high = np.quantile(f1, [tail, 1 - tail])
    return float(low), float(high)


def holds_answer(said: Iterable[Fields], answers: Sequence[str]) -> bool:
    """Whether an answer stands in the subject or object of a triplet, as whole normalised words."""
    wanted = [f" {form} " for form in map(normalize_answer, answers) if form]
    for subject, _, other in said:
        for field in (subject, other):
            own = f" {normalize_answer(field)} "
            if any(form in own for form in wanted):
                return True
    return False


def _normalised(fields: Fields) -> Fields:
    subject, predicate, other = map(normalize_answer, fields)
    return subject, predicate, other


def _bags(fields: Fields) -> list[Counter[str]]:
    return [Counter(normalize_answer(one).split()) for one in fields]


def _overlap(said: list[Counter[str]], true: list[Counter[str]]) -> tuple[float, float]:
    """(precision, recall) of one pair."""
    if said[1] and true[1] and not said[1] & true[1]:
        return 0.0, 0.0
    common = sum((one & other).total() for one, other in zip(said, true))
    own, wanted = (sum(bag.total() for bag in bags) for bags in (said, true))
    return (common / own if own else 0.0), (common / wanted if wanted else 0.0)


def _one_to_one(scores: np.ndarray) -> float:
    """The sum of a greedy matching, the highest score first."""
    scores = scores.copy()
    total = 0.0
    while scores.size:
        row, column = np.unravel_index(int(scores.argmax()), scores.shape)
        best = float(scores[row, column])
        if best <= 0.0:
            break
        total += best
        scores[row, :] = 0.0
        scores[:, column] = 0.0
    return total


Scorer = Callable[[Sequence[Fields], Sequence[Sequence[Fields]]], Match]
