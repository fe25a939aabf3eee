"""Tables and artifacts as Weights & Biases has them."""

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from triax.tracking.tracker import Artifact

FACTS_FILE = "facts.json"
# What lies in a run folder and is no result.
_OWN = {"wandb", "wandb.json"}
_VARIABLE = "WANDB_DATA_DIR"
_log = logging.getLogger(__name__)


def make_table(wandb: ModuleType, rows: Sequence[Mapping[str, Any]]) -> Any:
    """A `wandb.Table` of all keys, in order of their first appearance; what a row lacks is null.

    Lists and objects become JSON, since a column of W&B holds single values.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    data = [[_cell(row.get(column)) for column in columns] for row in rows]
    return wandb.Table(columns=columns, data=data, allow_mixed_types=True)


def make_artifact(wandb: ModuleType, made: Artifact, max_upload_mb: float | int) -> Any:
    """A `wandb.Artifact` with its lineage as metadata.

    Its files are sent if they are at most `max_upload_mb` megabytes together. What is larger is
    named by path and size, without being read: the files stay where they are. A file with the
    facts goes along always, so that another digest is another version even where nothing else
    tells the versions apart.
    """
    facts = {"hash": made.digest, "counts": dict(made.counts), "inputs": dict(made.inputs)}
    artifact = wandb.Artifact(safe_name(made.name), safe_name(made.kind), metadata=facts)
    with artifact.new_file(FACTS_FILE) as stream:
        json.dump(facts, stream, indent=2, sort_keys=True)
    files = list(files_of(made))
    size = sum(path.stat().st_size for path in files)
    if is_sent := size <= max_upload_mb * 1e6:
        for path in files:
            # Finished files do not change: no copy is made, neither before nor after sending.
            artifact.add_file(
                str(path),
                name=path.relative_to(made.folder).as_posix(),
                policy="immutable",
                skip_cache=True,
            )
    else:
        _log.info(
            "%s has %.0f MB, more than %g: W&B gets the paths only",
            made.name,
            size / 1e6,
            max_upload_mb,
        )
        for path in files:
            name = path.relative_to(made.folder).as_posix()
            artifact.add_reference(path.resolve().as_uri(), name=name, checksum=False)
    artifact.metadata |= {"files_are_sent": is_sent, "bytes": size}
    return artifact


def files_of(made: Artifact) -> Iterator[Path]:
    """The files of an artifact that are there, in order; hidden ones and W&B's own are left out."""
    if made.folder is None:
        return
    if made.files:
        yield from (path for name in made.files if (path := made.folder / name).is_file())
        return
    for path in sorted(made.folder.rglob("*")):
        parts = path.relative_to(made.folder).parts
        is_hidden = any(part.startswith(".") for part in parts)
        if path.is_file() and not is_hidden and parts[0] not in _OWN:
            yield path


def safe_name(name: str) -> str:
    """A name in the characters that W&B takes, of at most 128.

    >>> safe_name("index-my corpus/one-12ab")
    'index-my_corpus_one-12ab'
    """
    # The end of a name is what tells it from others: a hash.
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[-128:]


def alias(digest: str) -> str:
    """What a version of an artifact is called by."""
    return digest[:12]


@contextmanager
def staging_in(folder: Path) -> Iterator[None]:
    """W&B keeps its copies below `folder` meanwhile, unless the user said where.

    They would go to the home of whoever runs a node, and `wandb sync` needs them elsewhere later.
    """
    if os.environ.get(_VARIABLE):
        yield
        return
    os.environ[_VARIABLE] = str(folder)
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return json.dumps(value, ensure_ascii=False)
