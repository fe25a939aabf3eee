"""What was spent on a language model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """What a question cost. Tokens and seconds include calls that came from a cache."""

    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    llm_seconds: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.cached_calls + other.cached_calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.llm_seconds + other.llm_seconds,
        )
