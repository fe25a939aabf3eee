"""Trains the router: does vanilla retrieval suffice?   python train/router.py name=first"""

import hydra
import wiring
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="../conf", config_name="train_router")
def main(cfg: DictConfig) -> float:
    return wiring.train(cfg, "router")


if __name__ == "__main__":
    main()
