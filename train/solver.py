"""Trains a part of the solver.   python train/solver.py name=first task=resolve"""

import hydra
import wiring
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="../conf", config_name="train_solver")
def main(cfg: DictConfig) -> float:
    return wiring.train(cfg, "solver")


if __name__ == "__main__":
    main()
