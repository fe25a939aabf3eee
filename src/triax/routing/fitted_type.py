"""The control of the trained classifier of types: TF-IDF with a logistic regression."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from triax.records.question_types import TypeDecision
from triax.records.questions import Question
from triax.routing.fitted import tfidf_logistic
from triax.scoring.type_scores import score_types


@dataclass
class TfidfTypes:
    """A logistic regression over words and pairs of words, one output a type.

    Needs scikit-learn (`pip install 'triax[controls]'`). Its regularisation is chosen like the
    trained classifier's step, on the part of train that is held back.

    Args:
        strengths: inverse strengths of regularisation to choose from (scikit-learn's C).
    """

    strengths: Sequence[float] = (1.0, 10.0, 100.0)
    chosen: float | None = None
    _parts: Any = field(default=None, repr=False)

    def fit(
        self, train: Sequence[Question], held: Sequence[Question], seed: int = 0
    ) -> "TfidfTypes":
        """Learns the `kind` of `train`; keeps the strength with the best macro F1 on `held`.

        Of equally good ones the first.

        Raises:
            ModuleNotFoundError: scikit-learn is not installed; the message says how.
            ValueError: no question is held back, or those to learn from have less than two types.
        """
        kinds = [one.kind for one in train]
        if not held or len(set(kinds)) < 2:
            raise ValueError(
                f"{len(train)} questions of the types {sorted(set(kinds))} to learn from and "
                f"{len(held)} to choose by; expected two types and one question at least"
            )
        words, make = tfidf_logistic(random_state=seed)
        rows = words.fit_transform([one.text for one in train])
        best = -1.0
        for strength in self.strengths:
            fitted = make(C=strength).fit(rows, kinds)
            told = fitted.predict(words.transform([one.text for one in held])).tolist()
            score = score_types(told, [one.kind for one in held]).macro_f1
            if score > best:
                best, self.chosen, self._parts = score, strength, (words, fitted)
        return self

    async def classify(self, questions: Sequence[Question]) -> list[TypeDecision]:
        """One decision a question, with its probability.

        Raises:
            RuntimeError: it is not fitted.
        """
        if self._parts is None:
            raise RuntimeError("the TF-IDF control is not fitted; call fit first")
        if not questions:
            return []
        words, model = self._parts
        p = model.predict_proba(words.transform([one.text for one in questions]))
        places = p.argmax(axis=1).tolist()
        return [
            TypeDecision(str(model.classes_[place]), float(row[place]))
            for place, row in zip(places, p, strict=True)
        ]
