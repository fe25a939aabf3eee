"""Trains the extractor: passages to triplets.   python train/extractor.py name=first"""

import hydra
import wiring
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="../conf", config_name="train_extractor")
def main(cfg: DictConfig) -> float:
    return wiring.train(cfg, "extractor")


if __name__ == "__main__":
    main()
