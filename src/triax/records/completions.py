"""What is asked of a language model, and what it gives back."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Grammar:
    """A constraint on the output: a regular expression, a JSON schema (as JSON) or a lark grammar.

    Lark is llguidance's dialect, which can restrict a field to word spans of a given text.
    """

    kind: Literal["regex", "json_schema", "lark"]
    source: str


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One call. `stage` and `question_id` label it in the ledger; all else decides the output."""

    messages: tuple[Message, ...]
    max_tokens: int = 512
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    seed: int | None = None
    grammar: Grammar | None = None
    stage: str = ""
    question_id: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """One result. A call that failed has `text` None and says why in `error` (R3, R29).

    Tokens and seconds are those of the call that was made; `is_cached` says that it was made
    before, so that what a run cost can be told from what it would cost.
    """

    text: str | None
    finish_reason: Literal["stop", "length", "error"] = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    is_cached: bool = False
    error: str | None = None
