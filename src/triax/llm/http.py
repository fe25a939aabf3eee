"""A language model behind an OpenAI-compatible address: vLLM, llama.cpp, or a hosted service."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Literal, Protocol, runtime_checkable

from triax.llm.arrivals import OnResult, gather
from triax.llm.endpoint import Endpoint, EndpointError, MalformedReply, plain
from triax.llm.gbnf import gbnf_of_regex
from triax.records.completions import Completion, CompletionRequest, Grammar
from triax.records.text import clean

Structured = Literal["auto", "json_schema", "vllm", "llama_cpp", "none"]
TokenLimitField = Literal["max_tokens", "max_completion_tokens"]
_log = logging.getLogger(__name__)


@runtime_checkable
class Posts(Protocol):
    """What carries requests: one `Endpoint`, or several of them that act as one."""

    num_retries: int

    def session(self) -> AbstractAsyncContextManager[Any]: ...

    async def post(
        self, path: str, body: Mapping[str, Any], read: Callable[[dict[str, Any]], Completion]
    ) -> tuple[Completion, float]: ...


class ChatCompleter:
    """Sends all requests of a call at once and lets the server batch them.

    A request that fails is a completion with an error; the others go on (R3). Calls may come from
    one event loop after another.

    A grammar is sent in the words of the server that `structured` names:
    `json_schema` OpenAI's response_format, for JSON schemas only; `vllm` that, and
    structured_outputs with its older names guided_regex and guided_grammar; `llama_cpp`
    response_format, and GBNF for regular expressions; `none` nothing. `auto` sends all of these,
    since servers pass over fields that they do not know; where a server refuses, the request is
    sent once more without a constraint, which is logged and counted in `num_unconstrained`.

    Args:
        model: name of the model at the endpoint.
        endpoint: carries the requests.
        name: what the cache calls the endpoint.
        extra_body: further fields of every request, such as `{"top_p": 0.9}`.
        structured: how grammars are sent.
        revision: of the model, where the endpoint has one; it is part of the cache key.
        token_limit_field: `max_completion_tokens` for OpenAI's reasoning models.
    """

    def __init__(
        self,
        model: str,
        endpoint: Posts,
        name: str,
        extra_body: Mapping[str, Any] | None = None,
        structured: Structured = "auto",
        revision: str = "",
        token_limit_field: TokenLimitField = "max_tokens",
    ) -> None:
        self.model = model
        self.structured: Structured = structured
        self.num_unconstrained = 0
        self._endpoint = endpoint
        self._extra_body: dict[str, Any] = plain(extra_body or {})
        self._token_limit_field = token_limit_field
        self._refused: set[Grammar] = set()
        self.identity: dict[str, Any] = {
            "kind": "http",
            "model": model,
            "revision": revision,
            "endpoint": name,
            "structured": structured,
            "extra_body": self._extra_body,
        }

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.model!r}, {self._endpoint!r}, "
            f"structured={self.structured!r})"
        )

    @property
    def num_retries(self) -> int:
        """Tries beyond the first, over all calls so far."""
        return self._endpoint.num_retries

    async def complete(self, requests: Sequence[CompletionRequest]) -> list[Completion]:
        """One completion for each request, in order.

        Raises:
            ValueError: the environment variable of the key is not set.
        """
        return await self.complete_each(requests, lambda position, completion: None)

    async def complete_each(
        self, requests: Sequence[CompletionRequest], on_result: OnResult
    ) -> list[Completion]:
        """As `complete`; calls `on_result(position, completion)` when each has arrived."""

        async def one(position: int, request: CompletionRequest) -> Completion:
            completion = await self._one(request)
            on_result(position, completion)
            return completion

        async with self._endpoint.session():
            return await gather(one(*numbered) for numbered in enumerate(requests))

    async def _one(self, request: CompletionRequest) -> Completion:
        is_lenient = self.structured == "auto" and request.grammar is not None
        try:
            constraint = self._constraint(request.grammar)
        except ValueError as error:
            if not is_lenient:
                return Completion(None, "error", error=str(error))
            self._drop_constraint(request, str(error))
            constraint = {}
        try:
            return await self._post(request, constraint)
        except EndpointError as error:
            is_refusal = bool(constraint) and error.status in (400, 422)
            if not is_refusal:
                return Completion(None, "error", error=str(error))
            kind = request.grammar.kind if request.grammar else ""
            if not is_lenient:
                hint = f"the request asked for a {kind} grammar in the form {self.structured!r}"
                return Completion(None, "error", error=f"{error} ({hint}; see `structured`)")
            reason = str(error)
        try:
            completion = await self._post(request, {})
        except EndpointError as error:
            return Completion(None, "error", error=str(error))
        self._drop_constraint(request, reason)
        return completion

    def _drop_constraint(self, request: CompletionRequest, reason: str) -> None:
        self.num_unconstrained += 1
        if request.grammar is not None and request.grammar not in self._refused:
            self._refused.add(request.grammar)
            _log.warning(
                "%s answers without the %s grammar: %s", self.model, request.grammar.kind, reason
            )

    def _constraint(self, grammar: Grammar | None) -> dict[str, Any]:
        if grammar is None or self.structured == "none":
            return {}
        if grammar in self._refused:
            self.num_unconstrained += 1
            return {}
        return constraint_fields(grammar, self.structured)

    async def _post(self, request: CompletionRequest, constraint: dict[str, Any]) -> Completion:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {"role": message.role, "content": _sendable(message.content)}
                for message in request.messages
            ],
            self._token_limit_field: request.max_tokens,
            "temperature": request.temperature,
        }
        if request.stop:
            body["stop"] = list(request.stop)
        if request.seed is not None:
            body["seed"] = request.seed
        completion, seconds = await self._endpoint.post(
            "/chat/completions", body | constraint | self._extra_body, read_chat
        )
        return replace(completion, seconds=seconds)


class HttpCompleter(ChatCompleter):
    """A language model at one address; see `ChatCompleter`.

    Args:
        model: name of the model at the endpoint.
        base_url: address up to and including `/v1`.
        api_key_env: name of the environment variable that holds the key; see `Endpoint`.
        max_concurrent: calls under way at once.
        max_retries: further tries of one call.
        timeout_s: seconds that one try may take.
        extra_body, structured, revision, token_limit_field: see `ChatCompleter`.
        endpoint_name: what the cache calls the endpoint; the address where None. Give a name
            where the same server gets another address in each job.
        backoff_s, max_wait_s, max_requests_per_minute: see `Endpoint`.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key_env: str | None = None,
        max_concurrent: int = 64,
        max_retries: int = 6,
        timeout_s: int | float = 300.0,
        extra_body: Mapping[str, Any] | None = None,
        structured: Structured = "auto",
        revision: str = "",
        endpoint_name: str | None = None,
        token_limit_field: TokenLimitField = "max_tokens",
        backoff_s: int | float = 0.5,
        max_wait_s: int | float = 120.0,
        max_requests_per_minute: int | float | None = None,
    ) -> None:
        endpoint = Endpoint(
            base_url,
            api_key_env,
            max_concurrent,
            max_retries,
            timeout_s,
            backoff_s,
            max_wait_s,
            max_requests_per_minute,
        )
        name = endpoint_name or endpoint.base_url
        super().__init__(model, endpoint, name, extra_body, structured, revision, token_limit_field)


def constraint_fields(grammar: Grammar, structured: Structured) -> dict[str, Any]:
    """The fields of a request that hold its output to `grammar`, for one kind of server.

    Raises:
        ValueError: that kind of server has no words for this grammar, or it is malformed.
    """
    if grammar.kind == "json_schema":
        try:
            schema = json.loads(grammar.source)
        except json.JSONDecodeError as error:
            raise ValueError(f"a json_schema grammar that is no JSON: {error}") from None
        named = {"name": "answer", "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    fields: dict[str, Any] = {}
    name = "regex" if grammar.kind == "regex" else "grammar"
    if structured in ("vllm", "auto"):
        # vLLM before 0.11 knows the old name only, vLLM from 0.12 the new one only.
        fields[f"guided_{name}"] = grammar.source
        fields["structured_outputs"] = {name: grammar.source}
    if structured in ("llama_cpp", "auto") and grammar.kind == "regex":
        try:
            fields["grammar"] = gbnf_of_regex(grammar.source)
        except ValueError:
            if structured == "llama_cpp":
                raise
    if not fields:
        raise ValueError(
            f"structured={structured!r} has no form for a {grammar.kind} grammar; choose 'vllm' or "
            "'auto', or 'none' to ask without a constraint"
        )
    return fields


def read_chat(reply: Mapping[str, Any]) -> Completion:
    """Reads a chat completion; no text, or a text cut before its first word, is an error (R2).

    Raises:
        MalformedReply: the reply has no choice with a message, or the server broke it off.
    """
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise MalformedReply(f"no choice with a message in {json.dumps(reply)}")
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    num_prompt, num_completion = (
        count if isinstance(count := usage.get(name), int) else 0
        for name in ("prompt_tokens", "completion_tokens")
    )
    text = message.get("content")
    finish = choice.get("finish_reason")
    if finish in ("abort", "error"):  # vLLM's words when it goes down: the text is half a text
        raise MalformedReply(f"the server gave the call up (finish_reason {finish!r})")
    is_cut = finish == "length"
    error = None
    if is_cut and not (isinstance(text, str) and text.strip()):
        thought = message.get("reasoning_content") or message.get("reasoning")
        spent = "all went to the reasoning" if thought else "none made a text"
        error = f"the token limit was reached with no answer ({num_completion} tokens, {spent})"
        error += "; raise max_tokens"
    elif finish == "content_filter":
        error = "the endpoint's content filter withheld the answer"
    elif not isinstance(text, str):
        reason = message.get("refusal") or f"finish_reason {finish!r}"
        error = f"the reply has no text: {reason}"
    if error is not None:
        reason = "length" if is_cut else "error"
        return Completion(None, reason, num_prompt, num_completion, error=error)
    return Completion(text, "length" if is_cut else "stop", num_prompt, num_completion)


def _sendable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return clean(text)
    return text
