"""An extractor that stops at a gate until a test opens it: so a task is caught in the middle."""

import os
import time
from pathlib import Path

from triax.extraction.sentences import SentenceExtractor


def gate(folder, node, chunk_id):
    """The file that stops the extractor before a chunk on a node, as long as it is there."""
    return Path(folder) / f"{node}.{chunk_id}"


class GatedExtractor(SentenceExtractor):
    """Reads as its parent; writes down in `asked` what it reads, and on which node."""

    async def extract(self, chunks):
        folder = Path(os.environ["TRIAX_TEST_GATES"])
        node = os.environ.get("SLURMD_NODENAME", "here")
        for chunk in chunks:
            closed = gate(folder, node, chunk.id)
            if closed.exists():
                (folder / f"{closed.name}.reached").touch()
            while closed.exists():
                time.sleep(0.05)
        with (folder / "asked").open("a") as asked:
            asked.writelines(f"{node} {chunk.id}\n" for chunk in chunks)
        return await super().extract(chunks)
