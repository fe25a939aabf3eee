"""Learning: one loop, tasks that supply lessons and losses, checkpoints."""
