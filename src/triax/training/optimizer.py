"""Optimisers: AdamW with warm-up and linear decay."""

from collections.abc import Callable

import optax

# Built once the number of steps is known.
OptimizerFactory = Callable[[int], optax.GradientTransformation]


def adamw_linear(
    steps: int,
    *,
    learning_rate: float,
    warmup_share: float = 0.06,
    weight_decay: float = 0.01,
    max_grad_norm: float | None = 1.0,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> optax.GradientTransformation:
    """AdamW (Loshchilov and Hutter 2019), the learning rate rising, then falling to 0.

    Args:
        steps: length of the whole run, at whose end the rate is 0.
        learning_rate: the peak.
        warmup_share: share of the steps in which the rate rises from 0.
        weight_decay: is multiplied by the rate, as in torch.
        max_grad_norm: gradients are scaled down to this global norm; None leaves them.
        b1, b2, eps: as in the paper.

    Raises:
        ValueError: a share or the number of steps is out of range.
    """
    if steps < 1 or not 0 <= warmup_share < 1:
        raise ValueError(
            f"steps is {steps} and warmup_share {warmup_share}; expected 1 or more, and a share "
            "from 0 to below 1"
        )
    warmup = int(steps * warmup_share)
    rate = _linear(learning_rate, warmup, steps)
    adamw = optax.adamw(rate, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay)
    if max_grad_norm is None:
        return adamw
    return optax.chain(optax.clip_by_global_norm(max_grad_norm), adamw)


def _linear(peak: float, warmup: int, steps: int) -> optax.Schedule:
    rise = optax.schedules.linear_schedule(0.0, peak, max(1, warmup))
    fall = optax.schedules.linear_schedule(peak, 0.0, max(1, steps - warmup))
    # Without a warm-up the first step is made at the peak.
    return optax.schedules.join_schedules([rise, fall], [warmup]) if warmup else fall
