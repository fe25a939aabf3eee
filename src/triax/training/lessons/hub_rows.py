"""Full data sets of the Hugging Face hub as rows of the fields that the lessons are made of.

A lesson is made of files `<data set>/<split>.jsonl.gz`; these functions turn one row of a data set
as the hub has it into one row of such a file, so that every lesson can be had at full size.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
# The answer of a comparison: operator and the values of each compared name, to a name, yes or no.
Compare = Callable[[str, Mapping[str, Sequence[str]]], str | None]
Fact = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class HubSet:
    """A data set of the hub.

    `folder` is where the lessons look for it, `splits` leads from our split to the hub's, and
    `has_corpus` says whether its paragraphs, pooled, are a corpus in which wrong passages are
    looked for.
    """

    repository: str
    config: str | None
    folder: str
    splits: Mapping[str, str]
    read: Callable[[Row, Compare], dict[str, Any]]
    has_corpus: bool = False


def hotpotqa_row(row: Row, compare: Compare) -> dict[str, Any]:
    """hotpotqa/hotpot_qa: sentences carry the blanks between them."""
    return _with_context(row, "hotpotqa", join="")


def wikimultihop_row(row: Row, compare: Compare) -> dict[str, Any]:
    """framolfese/2WikiMultihopQA: HotpotQA's fields, and the gold facts as evidences.

    Query triplets are the facts with their objects unknown. A comparison's operator is the one
    that gives the answer; a row for which none does has no query triplets.
    """
    facts = [_fact(one) for one in row.get("evidences") or ()]
    triplets, operator = query_triplets(facts, row["answer"], compare)
    return _with_context(row, "2wikimultihopqa", join=" ") | {
        "evidences": [list(fact) for fact in facts],
        "query_triples": triplets,
        "query_triples_origin": "gold",
        "query_op": operator,
    }


def musique_row(row: Row, compare: Compare) -> dict[str, Any]:
    """dgslibisey/MuSiQue: steps with references #1; `subject >> relation` is a query triplet too.

    A supporting paragraph is given by its position.
    """
    paragraphs = [
        _paragraph(one["title"], one["paragraph_text"], None, one["is_supporting"])
        for one in row["paragraphs"]
    ]
    positions = {one["idx"]: place for place, one in enumerate(row["paragraphs"])}
    steps = [
        {
            "question": one["question"],
            "answer": one["answer"],
            "support_idx": positions.get(one["paragraph_support_idx"]),
        }
        for one in row["question_decomposition"]
    ]
    parts = [re.sub(r"#(\d+)", r"?\1", step["question"]).split(" >> ") for step in steps]
    triplets = [
        [part[0], part[1], f"?{number}"] for number, part in enumerate(parts, 1) if len(part) == 2
    ]
    return _question(row, "musique", row.get("answer_aliases")) | {
        "type": row["id"].split("__")[0],
        "paragraphs": paragraphs,
        "decomposition": steps,
        "query_triples": triplets if len(triplets) == len(parts) else [],
    }


def popqa_row(row: Row, compare: Compare) -> dict[str, Any]:
    """akariasai/PopQA: a triplet and its question, without a passage."""
    possible = row["possible_answers"]
    aliases = json.loads(possible) if isinstance(possible, str) else possible
    plain = {"id": row["id"], "question": row["question"], "answer": row["obj"]}
    return _question(plain, "popqa_qa", aliases) | {
        "query_triples": [[row["subj"], row["prop"], "?1"]],
    }


def squad_row(row: Row, compare: Compare) -> dict[str, Any]:
    """rajpurkar/squad: one paragraph, its answers as spans."""
    texts = list(dict.fromkeys(row["answers"]["text"]))
    plain = {"id": row["id"], "question": row["question"], "answer": texts[0]}
    return _question(plain, "squad", texts[1:]) | {
        "paragraphs": [_paragraph(row["title"].replace("_", " "), row["context"], None, True)],
    }


HUB_SETS: Mapping[str, HubSet] = {
    "hotpotqa": HubSet(
        "hotpotqa/hotpot_qa",
        "distractor",
        "hotpotqa",
        {"train": "train", "dev": "validation"},
        hotpotqa_row,
        has_corpus=True,
    ),
    "2wikimultihopqa": HubSet(
        "framolfese/2WikiMultihopQA",
        None,
        "2wikimultihopqa",
        {"train": "train", "dev": "validation"},
        wikimultihop_row,
        has_corpus=True,
    ),
    "musique": HubSet(
        "dgslibisey/MuSiQue",
        None,
        "musique",
        {"train": "train", "dev": "validation"},
        musique_row,
        has_corpus=True,
    ),
    # The hub has one split of PopQA; what is learnt from it cannot be tested on it.
    "popqa": HubSet("akariasai/PopQA", None, "popqa_qa", {"train": "test"}, popqa_row),
    "squad": HubSet(
        "rajpurkar/squad", None, "squad", {"train": "train", "dev": "validation"}, squad_row
    ),
}


def query_triplets(
    facts: Sequence[Fact], answer: str, compare: Compare
) -> tuple[list[list[str]], str | None]:
    """Facts with their objects unknown, and the operator if they are compared.

    >>> query_triplets([("Brand", "author", "Ibsen"), ("Ibsen", "country", "Norway")], "Norway",
    ...     lambda operator, values: None)
    ([['Brand', 'author', '?1'], ['?1', 'country', '?2']], None)
    """
    known: dict[str, str] = {}
    triplets = []
    for number, (subject, predicate, value) in enumerate(facts, 1):
        triplets.append([known.get(subject, subject), predicate, f"?{number}"])
        known[value] = f"?{number}"
    roots = [place for place, triplet in enumerate(triplets) if triplet[0] == facts[place][0]]
    if len(roots) < 2:
        return triplets, None
    # The values at the end of each branch, under the name with which it starts.
    values = {
        facts[start][0]: [facts[end - 1][2]]
        for start, end in zip(roots, [*roots[1:], len(facts)], strict=True)
    }
    operator = next(
        (
            one
            for one in ("same", "min", "max")
            if (said := compare(one, values)) and said.casefold() == answer.casefold()
        ),
        None,
    )
    return (triplets, operator) if operator else ([], None)


def pooled(rows: Iterable[Row]) -> list[dict[str, str]]:
    """The distinct paragraphs of rows, as the rows of a corpus."""
    found = {(one["title"], one["text"]) for row in rows for one in row["paragraphs"]}
    return [
        {"id": str(number), "title": title, "text": text}
        for number, (title, text) in enumerate(sorted(found))
    ]


def _fact(value: Any) -> Fact:
    if isinstance(value, Mapping):
        value = (value["fact"], value["relation"], value["entity"])
    subject, predicate, other = map(str, value)
    return subject, predicate, other


def _question(row: Row, dataset: str, aliases: Iterable[str] | None) -> dict[str, Any]:
    """The fields that every lesson may ask for, empty where the data set has nothing for them."""
    return {
        "id": str(row["id"]),
        "dataset": dataset,
        "question": row["question"],
        "answer": row["answer"],
        "answer_aliases": [one for one in aliases or () if one != row["answer"]],
        "type": row.get("type"),
        "supporting_facts": [],
        "paragraphs": [],
        "evidences": [],
        "decomposition": [],
        "query_triples": [],
        "source": "hub",
    }


def _paragraph(title: str, text: str, sents: list[int] | None, supports: bool) -> dict[str, Any]:
    return {"title": title, "text": text, "sents": sents, "is_supporting": bool(supports)}


def _with_context(row: Row, dataset: str, join: str) -> dict[str, Any]:
    facts = row["supporting_facts"]
    titles = set(facts["title"])
    paragraphs = []
    for title, sentences in zip(row["context"]["title"], row["context"]["sentences"], strict=True):
        starts, text = [], ""
        for sentence in sentences:
            text += join if text else ""
            # Blanks before a sentence belong to the one before it.
            starts.append(len(text) + len(sentence) - len(sentence.lstrip()))
            text += sentence
        paragraphs.append(_paragraph(title, text, starts, title in titles))
    return _question(row, dataset, None) | {
        "supporting_facts": [
            list(pair) for pair in zip(facts["title"], facts["sent_id"], strict=True)
        ],
        "paragraphs": paragraphs,
    }
