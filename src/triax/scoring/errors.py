"""Where answers go wrong: was what is needed in the context, and what became of it?

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 5, and
its revision): an error whose context covers what is needed is one of reasoning, else of retrieval.
M1 asks for the answer alone, M3 for every entity on the way to it, which is stricter by far.
T2RAG's own classes say which of its steps failed (Gong et al., 2026, sections 4.4 and Limitations).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.scoring.answers import normalize_answer
from triax.scoring.decomposition import has_equal_arguments
from triax.scoring.significance import mean_interval

CLOSED = ("yes", "no")
CLASSES = (
    "failed",
    "decomposition",
    "missing_retrieval",
    "unresolved",
    "hallucination",
    "wrong_resolution",
    "synthesis",
    "other",
)
Row = dict[str, Any]


def holds(context: str, text: str) -> bool:
    """Whether a text stands in a context, both normalised as answers are, at the ends of words.

    `context` is normalised already: see `coverage`.

    >>> holds("vertigo is film by hitchcock", "The Film!"), holds("hitchcockian", "Hitchcock")
    (True, False)
    """
    wanted = normalize_answer(text)
    return bool(wanted) and f" {wanted} " in f" {context} "


def coverage(question: Question, texts: Sequence[str], documents: Sequence[str]) -> Row:
    """Whether the context covers the answer (`m1`) and all that leads to it (`m3`).

    `m1`: one of the gold answers stands in the texts. Yes and no stand in no text; for them, all
    gold documents must be there. `m3`: all bridging entities stand in the texts: the answers of the
    gold steps, or else subjects and objects of the gold triplets, or else the titles of gold
    documents (their ids where the corpus has no titles). None where the data does not say.

    Args:
        question: with its gold.
        texts: all that the reader was shown.
        documents: of the retrieved chunks.

    Returns:
        `m1`, `m3` and, in `m1_by` and `m3_by`, what they were told from ("" for nothing).
    """
    context = normalize_answer(" ".join(texts))
    gold = set(question.gold_document_ids)
    has_documents = gold <= set(documents) if gold else None
    answers = [one for one in question.answers if normalize_answer(one) not in ("", *CLOSED)]
    found: Row = {"m1": None, "m1_by": "", "m3": None, "m3_by": ""}
    if answers:
        found |= {"m1": any(holds(context, one) for one in answers), "m1_by": "answer"}
    elif has_documents is not None:
        found |= {"m1": has_documents, "m1_by": "documents"}
    if entities := bridging_entities(question):
        by = "steps" if question.steps else "triplets"
        found |= {"m3": all(holds(context, one) for one in entities), "m3_by": by}
    elif has_documents is not None:
        found |= {"m3": has_documents, "m3_by": "documents"}
    return found


def bridging_entities(question: Question) -> tuple[str, ...]:
    """The entities on the way to the answer, as far as the data names them, each once."""
    if question.steps:
        named = [step.answer for step in question.steps]
    else:
        named = [end for one in question.gold_triplets for end in (one.subject, one.object)]
    kept = {normalize_answer(one): one for one in reversed(named)}
    return tuple(text for form, text in reversed(kept.items()) if form not in ("", *CLOSED))


def error_class(
    question: Question, trace: Mapping[str, Any], documents: Sequence[str]
) -> str | None:
    """Which step of T2RAG a wrong answer comes from; None for a method without a state.

    The first that holds, in the order of the steps:

    failed: the question ended with an error.
    decomposition: gold query triplets are known, and the written ones have other subjects and
        objects.
    missing_retrieval: a gold document was retrieved in no round.
    unresolved: all were, and a triplet is still open at the end.
    hallucination: a triplet was resolved with a value that stands in no text that it was shown.
    wrong_resolution: an entity on the way to the answer is in no resolved triplet.
    synthesis: all of them are, and the answer is another.
    other: the data does not say enough.

    Args:
        question: with its gold.
        trace: as `trace_to_json` gives it.
        documents: of the retrieved chunks.
    """
    if trace.get("error") is not None:
        return "failed"
    final = trace.get("final")
    if not final:
        return None
    written = [QueryTriplet.parse(*fields) for fields in trace["decomposition"]]
    gold = question.gold_query_triplets
    if gold and not has_equal_arguments(written, gold):
        return "decomposition"
    if set(question.gold_document_ids) - set(documents):
        return "missing_retrieval"
    if final["searchable"] or final["fuzzy"]:
        return "unresolved"
    if any(one["round"] and not one["chunk_ids"] for one in final["resolved"]):
        return "hallucination"
    entities = bridging_entities(question)
    if not entities:
        return "other"
    known = normalize_answer(" . ".join(" . ".join(one["triplet"]) for one in final["resolved"]))
    return "synthesis" if all(holds(known, one) for one in entities) else "wrong_resolution"


def is_resolved(trace: Mapping[str, Any]) -> bool | None:
    """Whether nothing was open at the end; None for a method without a state."""
    final = trace.get("final")
    return None if not final else not (final["searchable"] or final["fuzzy"])


def summarise(rows: Sequence[Row]) -> dict[str, float]:
    """Coverage, accuracy where covered, and the share of errors that reasoning made, by M1 and M3.

    Args:
        rows: one a question: `right` and `answered` (booleans), `m1`, `m3`, `resolved` (booleans or
            None), `class` (or None).

    Returns:
        Shares in [0, 1], each with its 95% bootstrap interval at `<name>/low` and `/high`; what no
        row tells is absent. A share of errors is over the wrong answers.
    """
    found: dict[str, float] = {"questions": float(len(rows))}
    _share(found, "errors/accuracy", [row["right"] for row in rows])
    _share(found, "errors/abstained", [not row["answered"] for row in rows])
    for name in ("m1", "m3"):
        known = [row for row in rows if row[name] is not None]
        _share(found, f"errors/{name}", [row[name] for row in known])
        _share(found, f"errors/{name}_accuracy", [row["right"] for row in known if row[name]])
        wrong = [row for row in known if not row["right"]]
        _share(found, f"errors/{name}_reasoning", [row[name] for row in wrong])
    for name, wanted in (("resolved", True), ("unresolved", False)):
        some = [row["right"] for row in rows if row["resolved"] is wanted]
        _share(found, f"errors/{name}_accuracy", some)
    classed = [row["class"] for row in rows if not row["right"] and row["class"]]
    for name in CLASSES if classed else ():
        _share(found, f"errors/{name}", [one == name for one in classed])
    return found


def _share(found: dict[str, float], name: str, values: Sequence[bool]) -> None:
    if values:
        interval = mean_interval([float(value) for value in values])
        found |= {
            name: interval.mean,
            f"{name}/low": interval.low,
            f"{name}/high": interval.high,
        }
