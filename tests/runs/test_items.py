import json
import signal
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.runs.items import ItemLog


def test_rows_by_id_in_order_of_first_appearance(tmp_path):
    log = ItemLog(tmp_path / "deep" / "items.jsonl")
    assert log.rows() == {}
    log.append([{"id": "b", "n": 1}, {"id": "a", "n": 2}])
    log.append(row for row in [{"id": "b", "n": 3}])
    assert log.rows() == {"b": {"id": "b", "n": 3}, "a": {"id": "a", "n": 2}}
    assert list(log.rows()) == ["b", "a"]
    assert ItemLog(log.path).rows() == log.rows()


def test_another_key(tmp_path):
    log = ItemLog(tmp_path / "items.jsonl", key="question_id")
    log.append([{"question_id": "7"}])
    assert log.rows() == {"7": {"question_id": "7"}}


def test_no_rows_write_nothing(tmp_path):
    log = ItemLog(tmp_path / "items.jsonl")
    log.append([])
    assert log.rows() == {}


@pytest.mark.parametrize("torn", [b'{"id": "b"', b"{", b'{"id": "b"}', b"\xff", '"ж'.encode()[:2]])
def test_r04_a_line_without_its_end_is_done_again(tmp_path, torn):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"id": "a"}\n' + torn)
    log = ItemLog(path)
    assert list(log.rows()) == ["a"]
    log.append([{"id": "b"}])
    assert list(log.rows()) == ["a", "b"]
    assert path.read_bytes() == b'{"id": "a"}\n{"id": "b"}\n'


def test_r04_a_torn_line_may_be_long_or_all_there_is(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"id": "a"}\n' + b"x" * 200_000)
    assert list(ItemLog(path).rows()) == ["a"]
    path.write_bytes(b"x" * 200_000)
    assert ItemLog(path).rows() == {}
    assert path.read_bytes() == b""


@settings(deadline=None)
@given(st.integers(0, 72))
def test_r04_cut_anywhere_whole_lines_stay(tmp_path_factory, size):
    whole = b"".join(b'{"id": "%d"}\n' % i for i in range(6))
    path = tmp_path_factory.mktemp("cut") / "items.jsonl"
    path.write_bytes(whole[:size])
    log = ItemLog(path)
    assert list(log.rows()) == list("012345"[: whole[:size].count(b"\n")])


@pytest.mark.parametrize("line", [b"x", b"[1]", b"{}", b"3", b'"id"', b"\xff", b""])
def test_a_bad_line_inside_is_named(tmp_path, line):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"id": 1}\n' + line + b'\n{"id": 2}\n')
    with pytest.raises(ValueError) as caught:
        ItemLog(path).rows()
    assert str(caught.value) == (
        f"{path}:2 is no JSON object with 'id'; delete that line, and its item is done again"
    )


def test_r07_any_text_can_be_kept(tmp_path):
    log = ItemLog(tmp_path / "items.jsonl")
    row = {"id": "é\u2028\ud83d", "text": "a\nb\x85c"}
    log.append([row])
    assert ItemLog(log.path).rows() == {row["id"]: row}
    assert log.path.read_bytes().count(b"\n") == 1


WRITE = (
    "import sys\n"
    "from triax.runs.items import ItemLog\n"
    "log = ItemLog(sys.argv[1])\n"
    "number = 0\n"
    "while True:\n"
    "    log.append({'id': str(number + i), 'text': 'x' * 500} for i in range(20))\n"
    "    number += 20\n"
    "    print(number, flush=True)\n"
)


def test_r04_what_was_appended_survives_a_kill(tmp_path):
    path = tmp_path / "items.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        said = 0
        while said < 200:
            said = int(writer.stdout.readline())
        writer.kill()
        said = max([said, *map(int, writer.stdout.read().split())])
    assert writer.returncode == -signal.SIGKILL
    ids = list(ItemLog(path).rows())
    assert len(ids) >= said
    assert ids == [str(number) for number in range(len(ids))]
    lengths = {len(json.loads(line)["text"]) for line in path.open(encoding="utf-8")}
    assert lengths == {500}
