"""Completions from a decoder in this process: JAX, batched, with grammars."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from triax.llm.grammar import GrammarCompiler
from triax.records.completions import Completion, CompletionRequest, Message

if TYPE_CHECKING:
    from triax.models.generate import Generator, Output, Prompt
    from triax.models.tokenizer import Tokenizer

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Model:
    tokenizer: "Tokenizer"
    generator: "Generator"
    compiler: GrammarCompiler
    special_texts: tuple[str, ...]


class LocalCompleter:
    """Completes with a model of the Llama family that runs here, on all devices of the mesh.

    The model is loaded by the first call. Calls wait for each other; the event loop does not wait
    for them. A request that cannot be run, or whose prompt is longer than `max_prompt_tokens`, is
    a failed completion and touches no other. `Completion.seconds` is the request's share of its
    batch. `seed=None` is seed 0: the same requests give the same texts.
    """

    def __init__(
        self,
        model: str = "HuggingFaceTB/SmolLM2-135M-Instruct",
        batch_size: int = 8,
        max_prompt_tokens: int = 3072,
        dtype: str = "float32",
        adapter: str | None = None,
    ):
        """Loads nothing yet.

        Args:
            model: a folder with a decoder, or its name on the hub.
            batch_size: the most requests that run together; memory grows with it.
            max_prompt_tokens: the longest prompt; longer ones fail.
            dtype: of weights, computation and cache, such as "bfloat16".
            adapter: a trained adapter that is added to the weights: a folder, the name of a
                shipped one, or its name on the hub.

        Raises:
            ValueError: `batch_size` or `max_prompt_tokens` is below 1.
        """
        if batch_size < 1 or max_prompt_tokens < 1:
            raise ValueError(f"{batch_size=} and {max_prompt_tokens=}, both must be at least 1")
        self.model = f"{model}+{adapter}" if adapter else model
        self.base = model
        self.adapter = adapter
        self.batch_size = batch_size
        self.max_prompt_tokens = max_prompt_tokens
        self.dtype = dtype
        self._model: _Model | None = None
        # One thread: calls queue up in order, from whatever event loop they come.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="local-completer")

    @property
    def identity(self) -> dict[str, str]:
        """What decides an output besides the request, for the keys of a call cache."""
        named = {"model": self.base, "endpoint": "in process", "dtype": self.dtype}
        return named if self.adapter is None else named | {"adapter": self._adapter_digest}

    @cached_property
    def _adapter_digest(self) -> str:
        """Of the weights: a folder keeps its name when it is trained again."""
        from triax.models.adapters import WEIGHTS_FILE, adapter_folder

        content = (adapter_folder(self.adapter) / WEIGHTS_FILE).read_bytes()
        return hashlib.sha256(content).hexdigest()

    async def complete(self, requests: Sequence[CompletionRequest]) -> list[Completion]:
        """Completes all requests, in order."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._complete, list(requests))

    def _complete(self, requests: Sequence[CompletionRequest]) -> list[Completion]:
        if not requests:
            return []
        if self._model is None:
            self._model = _load(
                self.base, self.dtype, self.adapter, self.batch_size, self.max_prompt_tokens
            )
        done: dict[int, Completion] = {}
        ready: list[tuple[int, Prompt]] = []
        for number, request in enumerate(requests):
            try:
                ready.append((number, self._prompt(request)))
            except ValueError as error:
                done[number] = _failed(str(error))
        # Rows of a batch should share how they are decoded, a beginning, and their length.
        ready.sort(key=lambda item: _likeness(item[1]))
        for at in range(0, len(ready), self.batch_size):
            batch = ready[at : at + self.batch_size]
            prompts = [prompt for _, prompt in batch]
            asked = [requests[number] for number, _ in batch]
            for (number, _), completion in zip(batch, self._run(prompts, asked), strict=True):
                done[number] = completion
            _LOG.info("%d of %d completions done", len(done), len(requests))
        return [done[number] for number in range(len(requests))]

    def _run(
        self, prompts: Sequence["Prompt"], requests: Sequence[CompletionRequest]
    ) -> list[Completion]:
        """Runs one batch; if that fails, each of its requests alone."""
        began = time.perf_counter()
        try:
            outputs = self._model.generator.generate(prompts)
        except Exception as error:
            if len(prompts) == 1:
                _LOG.warning("a local completion failed", exc_info=True)
                return [_failed(f"generation failed: {type(error).__name__}: {error}")]
            _LOG.warning("a batch of %d failed (%s); running each alone", len(prompts), error)
            return [
                # Its matcher has moved on, so the request is prepared anew.
                self._run([self._prompt(request)], [request])[0]
                for request in requests
            ]
        seconds = (time.perf_counter() - began) / len(prompts)
        return [
            self._completion(request, prompt, output, seconds)
            for request, prompt, output in zip(requests, prompts, outputs, strict=True)
        ]

    def _prompt(self, request: CompletionRequest) -> "Prompt":
        """Prepares a request; raises ValueError with what is wrong with it."""
        from triax.models.generate import Prompt

        model = self._model
        ids = model.tokenizer.encode(self._text(request.messages))
        if len(ids) > self.max_prompt_tokens:
            raise ValueError(
                f"the prompt has {len(ids)} tokens, at most {self.max_prompt_tokens} are read; "
                "send less text or raise max_prompt_tokens"
            )
        if request.max_tokens < 1:
            raise ValueError(f"max_tokens is {request.max_tokens}, expected at least 1")
        grammar = request.grammar
        is_matched = grammar is not None and grammar.kind == "lark"
        table = model.compiler.table(grammar) if grammar and not is_matched else None
        if table is not None and table.min_tokens > request.max_tokens:
            raise ValueError(
                f"max_tokens is {request.max_tokens}, the grammar needs at least "
                f"{table.min_tokens}; raise it"
            )

        def is_stopped(written: Sequence[int]) -> bool:
            text = model.tokenizer.decode(written)
            return any(stop in text for stop in request.stop)

        return Prompt(
            ids=tuple(ids),
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            seed=request.seed or 0,
            table=table,
            matcher=model.compiler.matcher(grammar) if is_matched else None,
            is_stopped=is_stopped if any(request.stop) else None,
        )

    def _text(self, messages: Sequence[Message]) -> str:
        """The conversation as one text. Names of special tokens in a message stay plain text."""
        messages = [
            Message(message.role, _defuse(message.content, self._model.special_texts))
            for message in messages
        ]
        if self._model.tokenizer.has_chat_template:
            return self._model.tokenizer.apply_chat_template(messages)
        return "\n\n".join(message.content for message in messages) + "\n\n"

    def _completion(
        self, request: CompletionRequest, prompt: "Prompt", output: "Output", seconds: float
    ) -> Completion:
        matcher, counts = prompt.matcher, (len(prompt.ids), len(output.ids), seconds)
        if matcher and matcher.error:
            return _failed(f"the grammar failed: {matcher.error}", *counts)
        if matcher and matcher.closed_length is None:
            return _failed(
                f"no output of the grammar was complete after {request.max_tokens} tokens; "
                "raise max_tokens",
                *counts,
            )
        text = self._model.tokenizer.decode(output.ids)
        cuts = [text.find(stop) for stop in request.stop if stop and stop in text]
        text = text[: min(cuts)] if cuts else text
        reason = "stop" if output.is_finished or cuts else "length"
        return Completion(text, reason, *counts)


def _load(
    name: str, dtype: str, adapter: str | None, batch_size: int, max_prompt_tokens: int
) -> _Model:
    import jax.numpy as jnp

    from triax.models.adapters import adapter_folder
    from triax.models.compile_cache import use_compile_cache
    from triax.models.decoder_params import apply_adapter, load_decoder, read_decoder_config
    from triax.models.generate import KEPT_PREFIXES, PIECE, Generator, batch_bucket, slots_bucket
    from triax.models.memory import report
    from triax.models.mesh import DATA, current_mesh
    from triax.models.model_memory import generation_memory
    from triax.models.tokenizer import load_tokenizer
    from triax.models.weights import locate

    began = time.perf_counter()
    use_compile_cache()
    folder = locate(name)
    tokenizer = load_tokenizer(folder)
    kind: Any = jnp.dtype(dtype)
    mesh = current_mesh()
    batch = batch_bucket(batch_size, mesh.shape[DATA])
    slots = slots_bucket(max_prompt_tokens + PIECE)  # and room for an answer
    shape = read_decoder_config(folder)
    estimate = generation_memory(shape, kind, mesh, batch, slots, PIECE, KEPT_PREFIXES)
    report(f"{name}, {batch} rows of {slots} tokens", estimate, mesh)
    decoder, config = load_decoder(folder, kind, mesh if mesh.size > 1 else None)
    if adapter is not None:
        base = apply_adapter(decoder, adapter_folder(adapter))["base"]
        if base != name:
            _LOG.warning("the adapter %s was trained on %s and is added to %s", adapter, base, name)
    compiler = GrammarCompiler(
        tokenizer.token_bytes()[: config.vocab_size],
        tokenizer.encode,
        tokenizer.eos_ids,
        config.vocab_size,
    )
    texts = (tokenizer.decode([id_], skip_special=False) for id_ in tokenizer.special_ids)
    _LOG.info("loaded %s in %.1f s", name, time.perf_counter() - began)
    return _Model(
        tokenizer,
        Generator(decoder, tokenizer.eos_ids, kind),
        compiler,
        tuple(sorted((text for text in texts if len(text) > 1), key=len, reverse=True)),
    )


def _likeness(prompt: "Prompt") -> tuple[bool, tuple[int, ...], int]:
    return prompt.matcher is not None, prompt.ids[:64], len(prompt.ids)


def _defuse(text: str, special_texts: Sequence[str]) -> str:
    """Puts a space into names of special tokens: a document must not end a turn (R24)."""
    for special in special_texts:
        while special in text:
            text = text.replace(special, f"{special[0]} {special[1:]}")
    return text


def _failed(
    error: str, prompt_tokens: int = 0, completion_tokens: int = 0, seconds: float = 0.0
) -> Completion:
    return Completion(None, "error", prompt_tokens, completion_tokens, seconds, error=error)
