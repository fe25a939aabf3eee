"""Where derived data lies: a folder named by everything that it was made from (R28)."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def artifact_folder(
    root: Path | str, kind: str, corpus: str, variant: str, inputs: Mapping[str, Any]
) -> Path:
    """`root/kind/corpus/variant-<hash>`; other inputs give another folder.

    `inputs` must be JSON. The hash is the first 12 hex digits of the sha256 of its sorted form.
    The three names come from data, so all but letters, digits, dots, dashes and underscores is
    replaced, and they are cut at 60 characters: the folder is always three levels under `root`.
    """
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
    names = (kind, corpus, variant)
    safe = [re.sub(r"[^\w.-]+", "_", name).strip(".")[:60] or "_" for name in names]
    return Path(root).expanduser() / safe[0] / safe[1] / f"{safe[2]}-{digest}"
