"""Full data sets of the Hugging Face hub, in the folders that the lessons are read from.

python train/download.py 'sets=[musique,squad]' data=full
TRIAX_DATA=full python train/solver.py name=full task=resolve 'task.sources={musique: 1, squad: 1}'
"""

import json
import sys
from pathlib import Path

import hydra
from datasets import load_dataset
from omegaconf import DictConfig

from triax.reasoning.comparison import compare
from triax.records.files import write_jsonl
from triax.tracking.progress import track
from triax.training.lessons.hub_rows import HUB_SETS, pooled


@hydra.main(version_base="1.3", config_path="../conf", config_name="download")
def main(cfg: DictConfig) -> None:
    if unknown := sorted(set(cfg.sets) - set(HUB_SETS)):
        sys.exit(f"error: no data sets {unknown}; expected some of {sorted(HUB_SETS)}")
    if cfg.repository and len(cfg.sets) != 1:
        sys.exit(f"error: repository={cfg.repository} is a copy of one set, not of {cfg.sets}")
    for name in cfg.sets:
        chosen = HUB_SETS[name]
        folder = Path(cfg.data).expanduser() / chosen.folder
        files = {split: folder / f"{split}.jsonl.gz" for split in chosen.splits}
        corpus = folder / "corpus.jsonl.gz"
        wanted = [*files.values(), *([corpus] if chosen.has_corpus else [])]
        if all(path.is_file() for path in wanted):
            print(json.dumps({"set": name, "folder": str(folder), "already": True}))
            continue
        repository = cfg.repository or chosen.repository
        rows = {}
        for split, theirs in chosen.splits.items():
            try:
                found = load_dataset(
                    repository,
                    None if cfg.repository else chosen.config,
                    split=theirs,
                    revision=cfg.revision,
                )
            except Exception as error:
                sys.exit(
                    f"error: {repository} did not give {theirs}: {error}; check network and "
                    "revision, or name a copy of it with repository=..."
                )
            with track(f"{name}, {split}", len(found)) as progress:
                rows[split] = []
                for number, row in enumerate(found, 1):
                    rows[split].append(chosen.read(row, compare))
                    progress(number)
        if chosen.has_corpus:
            write_jsonl(corpus, pooled(row for split in rows.values() for row in split))
        for split, path in files.items():
            write_jsonl(path, rows[split])
        counts = {split: len(found) for split, found in rows.items()}
        print(json.dumps({"set": name, "folder": str(folder), "rows": counts}))


if __name__ == "__main__":
    main()
