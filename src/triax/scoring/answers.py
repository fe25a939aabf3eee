"""Exact match and token F1 by the rules of SQuAD's and HotpotQA's official scripts."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from triax.records.questions import Question

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = ("yes", "no", "noanswer")


def normalize_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single blanks (SQuAD v1.1, evaluate-v1.1.py).

    Only ASCII punctuation goes, as in the official script: typographic quotes, dashes and accents
    stay, so "Café" is not "Cafe". Punctuation goes without a blank in its place.

    >>> normalize_answer("The U.S.")
    'us'
    >>> normalize_answer("1,000") == normalize_answer("1000")
    True
    >>> normalize_answer("-5")
    '5'
    """
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def is_exact_match(prediction: str, answer: str) -> bool:
    """Whether two answers are the same once normalised.

    >>> is_exact_match("A", "a"), is_exact_match("Café", "Cafe")
    (True, False)
    """
    return normalize_answer(prediction) == normalize_answer(answer)


def token_f1(prediction: str, answer: str) -> float:
    """F1 of the two bags of normalised words (HotpotQA, hotpot_evaluate_v1.py).

    HotpotQA's rule: if one side is yes, no or noanswer and the other is not the same, it is 0.
    Two sides without any word have F1 0, though their exact match is 1; so it is in the scripts.

    >>> token_f1("the film director Tim Burton", "Tim Burton")
    0.6666666666666666
    >>> token_f1("no", "no way"), token_f1("A", "a")
    (0.0, 0.0)
    """
    given, gold = normalize_answer(prediction), normalize_answer(answer)
    if given != gold and (given in _CLOSED or gold in _CLOSED):
        return 0.0
    given_words, gold_words = given.split(), gold.split()
    common = sum((Counter(given_words) & Counter(gold_words)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(given_words), common / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def best_exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1.0 if any of the answers is matched."""
    return float(any(is_exact_match(prediction, answer) for answer in answers))


def best_f1(prediction: str, answers: Sequence[str]) -> float:
    """The highest F1 over the answers, chosen apart from the exact match."""
    return max((token_f1(prediction, answer) for answer in answers), default=0.0)


def score_answers(
    predictions: Mapping[str, str | None], questions: Iterable[Question]
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Means over all questions that have a gold answer, and one row for each of them.

    A prediction that is None or blank scores 0 and counts as unanswered (R29). Questions without a
    gold answer are left out and counted in `answer/no_gold`.

    Args:
        predictions: by question id, None where a method gave no answer.
        questions: all questions that were asked.

    Returns:
        Summary with `answer/em`, `answer/f1` in [0, 1] (absent if nothing was scored) and the
        counts `answer/scored`, `answer/unanswered`, `answer/no_gold`; and the rows.

    Raises:
        ValueError: a question has no entry in the predictions, or the other way round.
    """
    questions = list(questions)
    require_same_ids("prediction", predictions, questions)
    rows = []
    for question in questions:
        if not question.answers:
            continue
        given = predictions[question.id]
        is_answered = given is not None and bool(given.strip())
        rows.append(
            {
                "question_id": question.id,
                "prediction": given if is_answered else None,
                "answers": list(question.answers),
                "em": best_exact_match(given, question.answers) if is_answered else 0.0,
                "f1": best_f1(given, question.answers) if is_answered else 0.0,
            }
        )
    summary = {
        "answer/scored": float(len(rows)),
        "answer/unanswered": float(sum(row["prediction"] is None for row in rows)),
        "answer/no_gold": float(len(questions) - len(rows)),
    }
    if rows:
        summary["answer/em"] = sum(row["em"] for row in rows) / len(rows)
        summary["answer/f1"] = sum(row["f1"] for row in rows) / len(rows)
    return summary, rows


def require_same_ids(what: str, given: Mapping[str, Any], questions: Iterable[Question]) -> None:
    """Refuses to score part of a run as if it were the whole.

    Raises:
        ValueError: the ids of the questions and of what was given differ, or one repeats.
    """
    counts = Counter(question.id for question in questions)
    repeated = [one for one, count in counts.items() if count > 1]
    missing = [one for one in counts if one not in given]
    unknown = [one for one in given if one not in counts]
    if repeated:
        raise ValueError(f"{len(repeated)} question ids repeat, e.g. {repeated[:3]}; make them one")
    if missing or unknown:
        raise ValueError(
            f"{len(missing)} questions have no {what} (e.g. {missing[:3]}) and {len(unknown)} have "
            f"no question (e.g. {unknown[:3]}); score exactly the questions that were asked, with "
            "an empty entry for one that failed"
        )
