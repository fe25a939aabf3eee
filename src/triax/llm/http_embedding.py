"""A text encoder behind an OpenAI-compatible address, such as vLLM serving NV-Embed-v2."""

import asyncio
import hashlib
import json
import logging
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from jaxtyping import Float32

from triax.llm.arrivals import gather
from triax.llm.endpoint import Endpoint, EndpointError, MalformedReply, plain
from triax.records.text import clean
from triax.records.verbs import TextRole

_log = logging.getLogger(__name__)


class HttpEncoder:
    r"""Embeds texts by `/embeddings`, many batches at once.

    An instruction is a template in which `{text}` stands for the text, or a prefix where it has no
    `{text}`: NV-Embed-v2's queries take `"Instruct: {task}\nQuery: {text}"` with the task written
    out. Texts without a word are sent as one space, since servers refuse the empty text.

    Attributes:
        name: the model's name.
        revision: differs where the rows of passages do: by `revision`, passage instruction,
            `max_chars` or `extra_body`.
        num_truncated: texts cut to `max_chars` so far.

    Args:
        model: name of the model at the endpoint.
        base_url: address up to and including `/v1`.
        api_key_env: name of the environment variable that holds the key; see `Endpoint`.
        dimension: length of a row; found by a first call where None.
        query_instruction: template of queries.
        passage_instruction: template of passages.
        batch_size: texts a call.
        max_concurrent: calls under way at once.
        max_chars: longer texts are cut, for servers that refuse what exceeds their window.
        extra_body: further fields of every request, such as `{"dimensions": 256}`.
        revision: of the model, where the endpoint has one.
        max_retries, timeout_s, backoff_s, max_wait_s, max_requests_per_minute: see `Endpoint`.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key_env: str | None = None,
        dimension: int | None = None,
        query_instruction: str = "",
        passage_instruction: str = "",
        batch_size: int = 64,
        max_concurrent: int = 8,
        max_retries: int = 6,
        timeout_s: int | float = 300.0,
        max_chars: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
        revision: str = "",
        backoff_s: int | float = 0.5,
        max_wait_s: int | float = 120.0,
        max_requests_per_minute: int | float | None = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"{batch_size=}: expected at least 1")
        self.name = model
        self.num_truncated = 0
        self._templates = {"query": query_instruction, "passage": passage_instruction}
        self._batch_size = batch_size
        self._max_chars = max_chars
        self._extra_body: dict[str, Any] = plain(extra_body or {})
        self._dimension = dimension
        self._endpoint = Endpoint(
            base_url,
            api_key_env,
            max_concurrent,
            max_retries,
            timeout_s,
            backoff_s,
            max_wait_s,
            max_requests_per_minute,
        )
        self.revision = self._revision(revision)

    def __repr__(self) -> str:
        return f"HttpEncoder({self.name!r}, {self._endpoint!r})"

    @property
    def dimension(self) -> int:
        """Length of a row. Where it was not given, the first look embeds one word to see."""
        if self._dimension is None:
            self.encode(["dimension"])
        assert self._dimension is not None
        return self._dimension

    def encode(
        self, texts: Sequence[str], role: TextRole = "passage"
    ) -> Float32[np.ndarray, "texts dimension"]:
        """Rows of length 1 in the order of the texts.

        May be called inside and outside of an event loop; it blocks until all is there.

        Raises:
            RuntimeError: a batch failed after its retries; the message names its range.
            ValueError: rows have another length than `dimension`, or the key is not set.
        """
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        prepared = [self._prepare(text, role) for text in texts]
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._encode(prepared))
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, self._encode(prepared)).result()

    async def _encode(self, texts: Sequence[str]) -> np.ndarray:
        starts = range(0, len(texts), self._batch_size)
        async with self._endpoint.session():
            parts = await gather(self._batch(texts, start) for start in starts)
        _log.info("%s embedded %d texts in %d calls", self.name, len(texts), len(parts))
        return np.concatenate(parts)

    async def _batch(self, texts: Sequence[str], start: int) -> np.ndarray:
        batch = texts[start : start + self._batch_size]
        body = {"model": self.name, "input": batch, "encoding_format": "float"}
        try:
            rows, _ = await self._endpoint.post(
                "/embeddings",
                body | self._extra_body,
                lambda reply: read_embeddings(reply, len(batch)),
            )
        except EndpointError as error:
            last = start + len(batch) - 1
            raise RuntimeError(
                f"texts {start} to {last} of {len(texts)} were not embedded by {self.name}: {error}"
            ) from None
        if self._dimension is None:
            self._dimension = rows.shape[1]
        if rows.shape[1] != self._dimension:
            raise ValueError(
                f"{self.name} at {self._endpoint.base_url} gave rows of {rows.shape[1]} numbers, "
                f"expected {self._dimension}; set `dimension` to what the model gives, or name the "
                "model that the index was built with"
            )
        return rows

    def _prepare(self, text: str, role: TextRole) -> str:
        text = clean(text)
        if self._max_chars is not None and len(text) > self._max_chars:
            self.num_truncated += 1
            text = text[: self._max_chars]
        template = self._templates[role]
        # No str.format: braces of a text are text.
        text = template.replace("{text}", text) if "{text}" in template else template + text
        return text if text.strip() else " "

    def _revision(self, revision: str) -> str:
        options = (self._templates["passage"], self._max_chars, self._extra_body)
        if options == ("", None, {}):
            return revision
        digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:12]
        return f"{revision}+{digest}" if revision else digest


def read_embeddings(reply: Mapping[str, Any], count: int) -> Float32[np.ndarray, "count dimension"]:
    """The rows of an embeddings reply, by their index, scaled to length 1.

    Raises:
        MalformedReply: not `count` rows of finite numbers and one length, or a row of zeros.
    """
    data = reply.get("data")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise MalformedReply(f"no list of rows in a reply with the fields {sorted(reply)}")
    if sorted(item.get("index", -1) for item in data) != list(range(count)):
        raise MalformedReply(f"{len(data)} rows that are not those of the {count} texts sent")
    vectors = [item.get("embedding") for item in sorted(data, key=lambda item: item["index"])]
    try:
        rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError):
        raise MalformedReply("rows that are not numbers, or of different lengths") from None
    if rows.ndim != 2 or rows.shape[1] == 0 or not math.isfinite(float(rows.sum())):
        raise MalformedReply(f"rows of shape {rows.shape}, some perhaps not finite")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not lengths.all():
        raise MalformedReply(f"row {int(lengths.argmin())} is all zeros, which has no direction")
    return (rows / lengths).astype(np.float32)
