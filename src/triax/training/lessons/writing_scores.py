"""How right a written output is: equal triplets, equal values."""

from collections.abc import Sequence

from triax.records.lesson_prompts import Assignment
from triax.records.text import normalise
from triax.records.triplet_text import parse_query_triplets, parse_triplets
from triax.scoring.answers import is_exact_match, token_f1
from triax.scoring.decomposition import decomposition_scores
from triax.training.lessons.texts import Lesson


def score_written(assignment: Assignment, pairs: Sequence[tuple[str, Lesson]]) -> dict[str, float]:
    """Means over outputs beside their lessons; {"exact": 0.0} for none.

    `exact` is the share of right outputs: of decompositions, those that are equal up to order,
    placeholders' names and the wording of predicates (`scoring.decomposition`); of values and
    answers, those that match exactly after SQuAD's normalisation; of extractions, the mean F1 of
    triplets whose three fields are equal, since hardly any passage has one right extraction.
    """
    if not pairs:
        return {"exact": 0.0}
    if assignment == "decompose":
        found, gold = (
            [parse_query_triplets(text).triplets for text in texts]
            for texts in zip(*((text, lesson.target) for text, lesson in pairs))
        )
        scores, _ = decomposition_scores(found, gold)
        return {"exact": scores.pop("equal")} | scores
    if assignment == "extract":
        rows = [{"exact": _triplet_f1(text, lesson.target)} for text, lesson in pairs]
    else:
        rows = [
            {
                "exact": float(is_exact_match(text, lesson.target)),
                "f1": token_f1(text, lesson.target),
            }
            for text, lesson in pairs
        ]
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def _triplet_f1(text: str, target: str) -> float:
    found, gold = (
        {tuple(map(normalise, one.fields)) for one in parse_triplets(part).triplets}
        for part in (text, target)
    )
    common = len(found & gold)
    return 2 * common / (len(found) + len(gold)) if common else 0.0
