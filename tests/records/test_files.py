import gzip
import json
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.records.files import atomic_write, json_line, read_jsonl, write_json, write_jsonl


def test_what_is_written_is_read(tmp_path):
    rows = [{"id": "ж", "text": "a\nb\u2028c\x85d"}, {}, {"n": [1, 2.5, None]}]
    assert write_jsonl(tmp_path / "deep" / "rows.jsonl", iter(rows)) == 3
    assert list(read_jsonl(tmp_path / "deep" / "rows.jsonl")) == rows
    assert list(read_jsonl(str(tmp_path / "deep" / "rows.jsonl"))) == rows
    assert "ж" in (tmp_path / "deep" / "rows.jsonl").read_text(encoding="utf-8")


def test_no_rows_are_an_empty_file(tmp_path):
    assert write_jsonl(tmp_path / "rows.jsonl", []) == 0
    assert list(read_jsonl(tmp_path / "rows.jsonl")) == []


def test_gzip(tmp_path):
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write('{"a": "é"}\n\n{"a": 2}')
    assert list(read_jsonl(tmp_path / "rows.jsonl.gz")) == [{"a": "é"}, {"a": 2}]


def test_lines_of_other_systems(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n  \r\n{"a": 2}\r\n')
    assert list(read_jsonl(path)) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"{", "no JSON"),
        (b"[1]", "a list, expected an object"),
        (b"null", "a NoneType, expected an object"),
        (b'{"a": "\xff"}', "no UTF-8"),
        (b"[" * 100_000, "no JSON"),
    ],
    ids=["cut", "list", "null", "bytes", "deep"],
)
def test_a_bad_line_is_named(tmp_path, line, fault):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n\n' + line + b"\n")
    rows = read_jsonl(path)
    assert next(rows) == {"a": 1}
    with pytest.raises(ValueError) as caught:
        next(rows)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert fault in str(caught.value)


def test_a_cut_gzip_file_is_named(tmp_path):
    whole = gzip.compress(b"".join(b'{"a": %d}\n' % i for i in range(20_000)))
    path = tmp_path / "rows.jsonl.gz"
    for data in (whole[: len(whole) // 2], b"no gzip"):
        path.write_bytes(data)
        with pytest.raises(ValueError) as caught:
            list(read_jsonl(path))
        assert str(caught.value).startswith(f"{path}:")
        assert "damaged gzip data" in str(caught.value)


@given(st.text())
def test_r07_any_text_is_written_as_utf8(text):
    line = json_line({"text": text})
    assert line.encode("utf-8").count(b"\n") == 1
    assert json.loads(line) == {"text": text}


def test_r07_half_a_surrogate_pair_does_not_stop_a_file(tmp_path):
    row = {"text": "x\ud83dy"}
    write_jsonl(tmp_path / "rows.jsonl", [row])
    assert list(read_jsonl(tmp_path / "rows.jsonl")) == [row]
    write_json(tmp_path / "one.json", row)
    assert json.loads((tmp_path / "one.json").read_text(encoding="utf-8")) == row


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_r19_no_number_that_is_none(tmp_path, number):
    for write in (write_json, lambda path, value: write_jsonl(path, [value])):
        with pytest.raises(ValueError):
            write(tmp_path / "x.json", {"f1": number})
    assert list(tmp_path.iterdir()) == []


def test_json_is_readable_and_sorted(tmp_path):
    write_json(tmp_path / "x.json", {"b": 1, "a": "é"})
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n  "a": "é",\n  "b": 1\n}\n'


def test_r05_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_jsonl(path, [{"a": 1}])

    def rows():
        yield {"a": 2}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_jsonl(path, rows())
    assert list(read_jsonl(path)) == [{"a": 1}]
    assert list(tmp_path.iterdir()) == [path]


def test_r05_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_jsonl(path, [{"a": 1}])
    program = (
        "import os, sys\n"
        "from triax.records.files import atomic_write\n"
        "with atomic_write(sys.argv[1]) as stream:\n"
        "    stream.write('half a li')\n"
        "    stream.flush()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(read_jsonl(path)) == [{"a": 1}]
    # What the dead writer left is hidden, and no other write stumbles over it.
    assert all(one == path or one.name.startswith(".") for one in tmp_path.iterdir())
    write_jsonl(path, [{"a": 2}])
    assert list(read_jsonl(path)) == [{"a": 2}]


def test_bytes_and_the_mode_of_the_file(tmp_path):
    with atomic_write(tmp_path / "x.bin", "wb") as stream:
        stream.write(b"\x00\xff")
        assert not (tmp_path / "x.bin").exists()
    assert (tmp_path / "x.bin").read_bytes() == b"\x00\xff"
    assert os.stat(tmp_path / "x.bin").st_mode & 0o777 == 0o644


def test_packed_rows_are_read_back_and_equal_rows_give_equal_bytes(tmp_path):
    rows = [{"a": 1}, {"a": "é"}]
    assert write_jsonl(tmp_path / "one.jsonl.gz", rows) == 2
    write_jsonl(tmp_path / "two.jsonl.gz", rows)
    assert list(read_jsonl(tmp_path / "one.jsonl.gz")) == rows
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


def test_a_folder_that_was_taken_away_stays_away(tmp_path):
    with pytest.raises(FileNotFoundError):
        with atomic_write(tmp_path / "gone" / "file", makes_folder=False):
            pass
    assert list(tmp_path.iterdir()) == []
