"""Prompts as text files: a change of wording shows as a change of a file."""

import os
from collections.abc import Iterable
from pathlib import Path

from triax.records.completions import Message

FOLDER = Path(__file__).parent / "golden"


def check_golden(name: str, messages: Iterable[Message]) -> None:
    """Compares a conversation with `golden/<name>.txt`, or writes it if TRIAX_GOLDEN is set."""
    shown = "".join(f"<<{turn.role}>>\n{turn.content}\n" for turn in messages)
    path = FOLDER / f"{name}.txt"
    if os.environ.get("TRIAX_GOLDEN"):
        path.write_text(shown, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8") if path.exists() else None
    assert shown == wanted, (
        f"the prompt {name} is not that of {path.name}; if the change is meant, run "
        "`TRIAX_GOLDEN=1 python -m pytest tests/reasoning` and look at the difference"
    )
