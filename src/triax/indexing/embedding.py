"""Vectors of a long list of texts, shard by shard, so that a killed run goes on where it was."""

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from triax.records.files import atomic_write, write_json
from triax.records.verbs import Encoder, TextRole

SCHEMA = 1
SHARD_SIZE = 1024
_log = logging.getLogger(__name__)


def embed(
    texts: Sequence[str],
    encoder: Encoder,
    folder: Path | str,
    role: TextRole = "passage",
    progress: Callable[[int], None] | None = None,
    shard_size: int = SHARD_SIZE,
) -> Float32[np.ndarray, "texts dimension"]:
    """Embeds texts, keeping finished shards in `folder` (R4).

    Each distinct text is encoded once. A shard is one `.npy` file whose name holds the hash of its
    vectors; it appears whole or not at all. The bounds of the shards depend on the texts alone, so
    a run that was killed and called again makes the same calls and gives the same bytes. Memory:
    the result, 4 bytes a component, and one shard.

    Args:
        texts: what to embed.
        encoder: gives float32 rows.
        folder: holds the shards and their manifest; it serves these texts and this encoder only.
        role: how the encoder is to read the texts.
        progress: is called with the number of distinct texts done so far.
        shard_size: distinct texts a shard; what a kill may cost.

    Raises:
        ValueError: the folder belongs to another encoder or to other texts (R28), a shard was
            altered, or the encoder gives rows of another shape than it says.
    """
    folder = Path(folder)
    position: dict[str, int] = {}
    inverse = np.array([position.setdefault(text, len(position)) for text in texts], np.int64)
    distinct = list(position)
    _claim(folder, distinct, encoder, role, shard_size)
    vectors = np.empty((len(distinct), encoder.dimension), np.float32)
    for number, start in enumerate(range(0, len(distinct), shard_size)):
        part = distinct[start : start + shard_size]
        shard = _shard(folder, number, part, encoder, role)
        if shard.shape != (len(part), encoder.dimension):
            raise ValueError(
                f"shard {number} of {folder} has shape {shard.shape}, expected "
                f"{(len(part), encoder.dimension)}; delete the folder and embed again"
            )
        vectors[start : start + len(part)] = shard
        if progress is not None:
            progress(start + len(part))
    _log.info("embedded %d distinct of %d texts with %s", len(distinct), len(texts), encoder.name)
    return vectors if len(distinct) == len(texts) else vectors[inverse]


def embed_shards(
    texts: Sequence[str],
    encoder: Encoder,
    folder: Path | str,
    numbers: Collection[int],
    role: TextRole = "passage",
    progress: Callable[[int], None] | None = None,
    shard_size: int = SHARD_SIZE,
) -> int:
    """Makes some of the shards that `embed` of the same arguments would, and finds, later.

    Several processes may make different ones, or the same, in one folder: a shard appears whole,
    and the encoder gets the very texts that it would in `embed`.

    Args:
        numbers: of the shards; finished ones are passed over, ones beyond the last are none.
        progress: is called with the number of these shards done so far.

    Returns:
        How many were made.

    Raises:
        ValueError: as `embed`.
        FileNotFoundError: the folder was taken away meanwhile.
    """
    folder = Path(folder)
    distinct = list(dict.fromkeys(texts))
    _claim(folder, distinct, encoder, role, shard_size)
    num_made = 0
    for done, number in enumerate(sorted(numbers), 1):
        part = distinct[number * shard_size : (number + 1) * shard_size]
        if part and not any(_paths(folder, number)):
            _write(folder, number, _encode(part, encoder, role))
            num_made += 1
        if progress is not None:
            progress(done)
    return num_made


def num_shards(texts: Sequence[str], shard_size: int = SHARD_SIZE) -> int:
    """How many shards `embed` cuts these texts into."""
    return -(-len(set(texts)) // shard_size)


def missing_shards(
    texts: Sequence[str], folder: Path | str, shard_size: int = SHARD_SIZE
) -> list[int]:
    """The shards of these texts that are not in a folder."""
    numbers = range(num_shards(texts, shard_size))
    return [number for number in numbers if not any(_paths(Path(folder), number))]


def fingerprint(encoder: Encoder) -> dict[str, Any]:
    """What tells one encoder from another in a manifest.

    Name and dimension, and all that the encoder itself says in a `fingerprint` mapping (weights,
    pooling, normalisation), or else in a `revision`.
    """
    own = getattr(encoder, "fingerprint", None)
    if isinstance(own, Mapping):
        # Through JSON, so that it compares equal to what a manifest gives back.
        return json.loads(json.dumps({**own, "name": encoder.name, "dimension": encoder.dimension}))
    found: dict[str, Any] = {"name": encoder.name, "dimension": encoder.dimension}
    if revision := getattr(encoder, "revision", None):
        found["revision"] = str(revision)
    return found


def refuse_mismatch(
    place: Path | str, stored: Mapping[str, Any], given: Mapping[str, Any], fix: str
) -> None:
    """Compares what a folder was made from with what is given now.

    Raises:
        ValueError: they differ; the message names the place, each differing value and the fix.
    """
    changed = [
        f"{key}: {stored.get(key)!r} there, {given.get(key)!r} given"
        for key in sorted({*stored, *given})
        if stored.get(key) != given.get(key)
    ]
    if changed:
        raise ValueError(f"{place} was made from something else ({'; '.join(changed)}); {fix}")


def _claim(
    folder: Path, distinct: Sequence[str], encoder: Encoder, role: TextRole, shard_size: int
) -> None:
    digest = hashlib.sha256()
    for text in distinct:
        digest.update(json.dumps(text).encode("ascii") + b"\n")
    given = {
        "schema": SCHEMA,
        "encoder": fingerprint(encoder),
        "role": role,
        "num_texts": len(distinct),
        "texts_sha256": digest.hexdigest(),
        "shard_size": shard_size,
    }
    path = folder / "manifest.json"
    # Before the manifest: another process may write both, the manifest first.
    has_shards = any(folder.glob("shard-*.npy"))
    if path.exists():
        fix = "embed into another folder, or delete this one"
        refuse_mismatch(folder, json.loads(path.read_text(encoding="utf-8")), given, fix)
    elif has_shards:
        raise ValueError(f"{folder} holds shards without a manifest; delete it and embed again")
    else:
        write_json(path, given)


def _encode(texts: Sequence[str], encoder: Encoder, role: TextRole) -> np.ndarray:
    rows = np.ascontiguousarray(encoder.encode(texts, role), np.float32)
    if rows.shape != (len(texts), encoder.dimension):
        raise ValueError(
            f"encoder {encoder.name!r} gave shape {rows.shape}, expected "
            f"{(len(texts), encoder.dimension)}; its dimension must be that of its rows"
        )
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise ValueError(
            f"encoder {encoder.name!r} gave a row that is not finite for {texts[bad][:80]!r}; "
            "leave the text out or mend the encoder"
        )
    return rows


def _shard(
    folder: Path, number: int, texts: Sequence[str], encoder: Encoder, role: TextRole
) -> np.ndarray:
    """A finished shard, or one that is made now."""
    shard = _finished(folder, number)
    if shard is None:
        shard = _encode(texts, encoder, role)
        _write(folder, number, shard)
    return shard


def _digest(shard: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(shard)).hexdigest()[:16]


def _write(folder: Path, number: int, shard: np.ndarray) -> None:
    # A folder that is gone was cleared by who finished the index, and must not come back.
    path = folder / f"shard-{number:06d}-{_digest(shard)}.npy"
    with atomic_write(path, "wb", makes_folder=False) as stream:
        np.save(stream, shard)


def _paths(folder: Path, number: int) -> list[Path]:
    # Sorted: two runs at once, on machines that round differently, may leave two sound shards.
    return sorted(folder.glob(f"shard-{number:06d}-*.npy"))


def _finished(folder: Path, number: int) -> np.ndarray | None:
    for path in _paths(folder, number):
        try:
            shard = np.load(path, allow_pickle=False)
        except FileNotFoundError:  # another run has finished and cleared its shards
            return None
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} cannot be read ({error}); delete it, run again") from None
        if _digest(shard) != path.stem.rsplit("-", 1)[1]:
            raise ValueError(f"{path} was altered: its hash is {_digest(shard)}; delete it")
        return shard
    return None
