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
    """
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
    safe = [re.sub(r"[^\w.-]+", "_", part).strip(".") or "_" for part in (kind, corpus, variant)]
    return Path(root).expanduser() / safe[0] / safe[1] / f"{safe[2]}-{digest}"
