"""Trains the classifier of question types.   python train/question_type.py name=first"""

import hydra
import wiring
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="../conf", config_name="train_question_type")
def main(cfg: DictConfig) -> float:
    return wiring.train(cfg, "question_type")


if __name__ == "__main__":
    main()
