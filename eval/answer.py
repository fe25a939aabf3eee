"""Questions to answers.   python eval/answer.py name=first corpus=demo extractor=sentences"""

import json
import sys

import hydra
import wiring
from answering import Opened, answer
from omegaconf import DictConfig

from triax.runs.folder import RunFolderError


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    try:
        folder, answers = answer(cfg, Opened(cfg, *wiring.open_corpus(cfg)))
    except RunFolderError as error:
        sys.exit(f"error: {error}")
    failed = sum(row["error"] is not None for row in answers)
    print(json.dumps({"folder": str(folder), "questions": len(answers), "failed": failed}))


if __name__ == "__main__":
    main()
