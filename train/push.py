"""Shows weights on a model hub.   python train/push.py weights=runs/train/solver/first/weights \
repository=me/solver"""

import json
import sys

import hydra
from omegaconf import DictConfig

from triax.training.publish import PublishError, push


@hydra.main(version_base="1.3", config_path="../conf", config_name="push")
def main(cfg: DictConfig) -> None:
    try:
        revision = push(
            cfg.weights, cfg.repository, cfg.private, cfg.max_bytes, message=cfg.message
        )
    except PublishError as error:
        sys.exit(f"error: {error}")
    print(json.dumps({"repository": cfg.repository, "revision": revision}))


if __name__ == "__main__":
    main()
