import gzip
import json
import unicodedata

import pytest

from triax.corpora.typed_questions import hold_out, load_typed
from triax.records.questions import Question


def write(folder, rows, split="train"):
    (folder / "toy").mkdir(exist_ok=True)
    with gzip.open(folder / "toy" / f"{split}.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


def test_only_questions_with_a_type_are_kept(tmp_path):
    kinds = ["compositional", "comparison", None, "2hop", "yes_no", "inference"]
    write(
        tmp_path,
        [{"id": n, "question": f"Q{n}?", "type": kind} for n, kind in enumerate(kinds)]
        + [{"id": "x", "question": "no type"}],
    )
    found = load_typed(tmp_path, "toy")
    assert [(one.id, one.text, one.kind) for one in found] == [
        ("0", "Q0?", "bridge"),
        ("1", "Q1?", "comparison"),
        ("3", "Q3?", "bridge"),
        ("5", "Q5?", "inference"),
    ]
    assert load_typed(tmp_path, "toy", limit=2) == found[:2]


def test_a_missing_file_and_one_without_types_are_named(tmp_path):
    write(tmp_path, [{"id": "a", "question": "Who?"}], "dev")
    with pytest.raises(FileNotFoundError, match="dev.jsonl.gz"):
        load_typed(tmp_path, "toy", "train")
    with pytest.raises(ValueError, match="none of 1 questions has a type"):
        load_typed(tmp_path, "toy", "dev")


def test_what_is_held_back_hangs_on_the_words_alone():
    questions = [Question(str(n), f"Who is person {n}?") for n in range(2000)]
    learnt, held = hold_out(questions, 0.1)
    assert sorted([*learnt, *held], key=lambda one: int(one.id)) == questions
    # 200 are expected; four standard deviations are sqrt(2000 * 0.1 * 0.9) * 4, about 54.
    assert abs(len(held) - 200) < 54
    ids = {one.id for one in held}
    others = [
        Question(f"other {one.id}", unicodedata.normalize("NFKD", f"  {one.text.upper()} "))
        for one in reversed(questions)
    ]
    assert {one.id.split()[1] for one in hold_out(others, 0.1)[1]} == ids
    # More is held back of the same, never other questions.
    assert ids < {one.id for one in hold_out(questions, 0.2)[1]}
    assert hold_out(questions, 0.0)[1] == [] and hold_out(questions, 1.0)[0] == []
    assert hold_out([], 0.1) == ([], [])
