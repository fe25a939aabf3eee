"""A corpus through an extractor: resumable, with a judgement at the end (R2, R3, R4, R28)."""

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from triax.extraction.recorded import extraction_from_json, extraction_to_json
from triax.llm.servers import NoServerError
from triax.records.documents import Chunk
from triax.records.files import write_json, write_jsonl
from triax.records.triplets import Extraction
from triax.records.verbs import Extractor
from triax.runs.folder import claim
from triax.runs.items import ItemLog

_log = logging.getLogger(__name__)
_SCHEMA = 1
# So many failures in a row, and at least three whole batches, mean that the model is not there.
_HOPELESS = 64


class ExtractionError(RuntimeError):
    """Too many chunks gave nothing. All results are saved; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What became of the chunks. `seconds` are those of this call, `num_resumed` came before it."""

    num_chunks: int
    ok: int
    partial: int
    empty: int
    failed: int
    num_triplets: int
    num_resumed: int
    seconds: float
    failed_chunk_ids: tuple[str, ...]

    @property
    def share_without_triplets(self) -> float:
        """Share of failed and empty chunks; 0 for no chunks."""
        return (self.failed + self.empty) / self.num_chunks if self.num_chunks else 0.0

    def to_json(self) -> dict[str, Any]:
        """All fields, for a printed line or a file."""
        return asdict(self) | {"failed_chunk_ids": list(self.failed_chunk_ids)}


async def extract_corpus(
    chunks: Sequence[Chunk],
    extractor: Extractor,
    folder: Path | str,
    *,
    batch_size: int = 64,
    max_failed: float = 0.05,
    progress: Callable[[int], None] | None = None,
) -> ExtractionReport:
    """Extracts what is not extracted yet; a killed call is taken up where it ended.

    Results go to `extractions.jsonl` after each batch. At the end failed chunks are tried once
    more, each alone; then `triplets.jsonl` (one row a chunk, in order of the chunks),
    `report.json` and, unless too many chunks failed, `manifest.json` are written. Chunks that
    failed in an earlier call are tried again.

    Args:
        chunks: with different ids.
        extractor: its `name`, and its `config` if it has one, must be those of earlier calls.
        folder: is claimed for the time of the call.
        batch_size: how many chunks the extractor gets at once, and the most that a kill loses.
        max_failed: largest share of failed and empty chunks that is accepted.
        progress: is called with the number of chunks done.

    Raises:
        ValueError: two chunks share an id.
        RunFolderError: the folder holds results of another corpus or extractor, or is in use.
        ExtractionError: more than `max_failed` of the chunks gave no triplet.
        NoServerError: there is no language model to ask; what was found is kept.
    """
    started = time.monotonic()
    config = describe(chunks, extractor)
    claimed = claim(folder, config)
    try:
        log = ItemLog(claimed / "extractions.jsonl", key="chunk_id")
        found = {key: extraction_from_json(row) for key, row in log.rows().items()}
        done = {key for key, extraction in found.items() if extraction.status != "failed"}
        left = [chunk for chunk in chunks if chunk.id not in done]
        num_resumed = len(chunks) - len(left)
        advance = progress or _ignore
        advance(num_resumed)
        await _extract(left, extractor, log, batch_size, lambda count: advance(num_resumed + count))
        found = {key: extraction_from_json(row) for key, row in log.rows().items()}
        seconds = round(time.monotonic() - started, 3)
        report = _save(chunks, found, claimed.path, config, max_failed, num_resumed, seconds)
    finally:
        claimed.release()
    return report


def describe(chunks: Sequence[Chunk], extractor: Extractor) -> dict[str, Any]:
    """What an extraction is made from; a folder of results holds one such only (R28).

    Raises:
        ValueError: two chunks share an id.
    """
    repeated = [key for key, count in Counter(chunk.id for chunk in chunks).items() if count > 1]
    if repeated:
        raise ValueError(f"{len(repeated)} chunk ids occur twice, such as {repeated[0]!r}")
    return {
        "schema": _SCHEMA,
        "extractor": extractor.name,
        "extractor_config": dict(getattr(extractor, "config", {})),
        "corpus": _hash_chunks(chunks),
    }


def save_extractions(
    chunks: Sequence[Chunk],
    extractions: Sequence[Extraction],
    folder: Path | str,
    config: Mapping[str, Any],
    *,
    max_failed: float = 0.05,
    seconds: float = 0.0,
) -> ExtractionReport:
    """Writes what was extracted elsewhere as `extract_corpus` would have, with its judgement.

    Args:
        chunks: all of the corpus.
        extractions: one for each chunk, in order.
        folder: where they go; a later `extract_corpus` of the same finds all of them done.
        config: what `describe` said of chunks and extractor.
        max_failed: largest share of failed and empty chunks that is accepted.
        seconds: what the report says.

    Raises:
        ValueError: the extractions are not those of the chunks.
        RunFolderError: the folder holds results of another corpus or extractor, or is in use.
        ExtractionError: more than `max_failed` of the chunks gave no triplet.
    """
    if [one.chunk_id for one in extractions] != [chunk.id for chunk in chunks]:
        raise ValueError(
            f"{len(extractions)} extractions are not those of {len(chunks)} chunks; expected one "
            "for each, in order and with its id"
        )
    claimed = claim(folder, config)
    try:
        write_jsonl(claimed / "extractions.jsonl", map(extraction_to_json, extractions))
        found = {one.chunk_id: one for one in extractions}
        report = _save(chunks, found, claimed.path, dict(config), max_failed, 0, seconds)
    finally:
        claimed.release()
    return report


async def _extract(
    chunks: Sequence[Chunk],
    extractor: Extractor,
    log: ItemLog,
    batch_size: int,
    progress: Callable[[int], None],
) -> None:
    """All chunks in batches, then the failed ones alone; stops where nothing works."""
    failed: list[Chunk] = []
    in_a_row = 0
    for start in range(0, len(chunks), batch_size):
        batch = chunks[start : start + batch_size]
        extractions = await _try(batch, extractor)
        log.append(map(extraction_to_json, extractions))
        failed += [c for c, e in zip(batch, extractions) if e.status == "failed"]
        for extraction in extractions:
            in_a_row = in_a_row + 1 if extraction.status == "failed" else 0
        progress(start + len(batch))
        if in_a_row >= max(_HOPELESS, 3 * batch_size):
            _log.error("stopped after %d failed chunks in a row", in_a_row)
            return
    for chunk in failed:
        log.append(map(extraction_to_json, await _try([chunk], extractor)))


async def _try(chunks: Sequence[Chunk], extractor: Extractor) -> list[Extraction]:
    """What the extractor gives; if it raises, failed extractions that say so (R3)."""
    try:
        extractions = await extractor.extract(chunks)
    except NoServerError:
        raise  # no chunk is to blame, and the next batch would wait as long
    except Exception as error:
        _log.exception("the extractor %s raised on %d chunks", extractor.name, len(chunks))
        reason = f"{type(error).__name__}: {error}"
        return [Extraction(chunk.id, (), status="failed", reason=reason) for chunk in chunks]
    if [extraction.chunk_id for extraction in extractions] != [chunk.id for chunk in chunks]:
        raise ValueError(
            f"the extractor {extractor.name} gave {len(extractions)} extractions for {len(chunks)} "
            "chunks; expected one for each, in order and with its id"
        )
    return extractions


def _save(
    chunks: Sequence[Chunk],
    found: dict[str, Extraction],
    folder: Path,
    config: dict[str, Any],
    max_failed: float,
    num_resumed: int,
    seconds: float,
) -> ExtractionReport:
    missing = "not tried, because too many before it failed"
    rows = [
        found.get(chunk.id, Extraction(chunk.id, (), status="failed", reason=missing))
        for chunk in chunks
    ]
    statuses = Counter(row.status for row in rows)
    report = ExtractionReport(
        len(rows),
        statuses["ok"],
        statuses["partial"],
        statuses["empty"],
        statuses["failed"],
        sum(len(row.triplets) for row in rows),
        num_resumed,
        seconds,
        tuple(row.chunk_id for row in rows if row.status == "failed"),
    )
    write_jsonl(folder / "triplets.jsonl", map(extraction_to_json, rows))
    write_json(folder / "report.json", report.to_json())
    if report.share_without_triplets > max_failed:
        (folder / "manifest.json").unlink(missing_ok=True)
        raise ExtractionError(_complaint(report, rows, folder, max_failed))
    write_json(
        folder / "manifest.json",
        config
        | {
            "counts": {
                "chunks": report.num_chunks,
                "triplets": report.num_triplets,
                **{status: statuses[status] for status in ("ok", "partial", "empty", "failed")},
            },
            "files": {
                "triplets.jsonl": hashlib.sha256(
                    (folder / "triplets.jsonl").read_bytes()
                ).hexdigest()
            },
        },
    )
    for row in rows:
        if row.status == "failed":
            _log.warning("chunk %s failed: %s", row.chunk_id, row.reason)
    _log.info("extraction: %s", report.to_json())
    return report


def _complaint(
    report: ExtractionReport, rows: Sequence[Extraction], folder: Path, max_failed: float
) -> str:
    reasons = Counter(row.reason for row in rows if row.status in ("failed", "empty"))
    (reason, count), *_ = reasons.most_common(1)
    return (
        f"{report.failed} of {report.num_chunks} chunks failed and {report.empty} are empty, more "
        f"than max_failed={max_failed}; most often ({count}): {reason}. All results "
        f"are in {folder}. Run again to try the failed chunks again, or raise max_failed to accept "
        "them"
    )


def _ignore(count: int) -> None:
    """Progress that nobody asked for."""


def _hash_chunks(chunks: Sequence[Chunk]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        row = json.dumps([chunk.id, chunk.title, chunk.text])
        digest.update(row.encode("ascii") + b"\n")
    return digest.hexdigest()
