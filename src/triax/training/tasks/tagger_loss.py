"""The loss of a triplet tagger: spans, pairs, predicates and relations, each averaged by row."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from triax.models.triplet_tagger import MENTION, OBJECT, SUBJECT, Layout, TripletTagger
from triax.training.lessons.tagged_windows import RIGHT, UNKNOWN, WRONG
from triax.training.task import Loss

_NEVER = -1e9
_CERTAIN = 1e6  # is added to the score of right spans, so that they are among the candidates


def span_loss(
    scores: Float[Array, "*b spans"], right: Bool[Array, "*b spans"], wrong: Bool[Array, "*b spans"]
) -> Float[Array, "*b"]:
    """log(1 + sum over wrong e^s) + log(1 + sum over right e^-s): all right ones above 0, all wrong
    ones below (Su et al. 2022, equation 9); spans that are neither do not count.
    """
    zero = jnp.zeros((*scores.shape[:-1], 1), scores.dtype)
    high = jnp.concatenate([zero, jnp.where(wrong, scores, _NEVER)], -1)
    low = jnp.concatenate([zero, jnp.where(right, -scores, _NEVER)], -1)
    return jax.nn.logsumexp(high, -1) + jax.nn.logsumexp(low, -1)


def tagger_loss(model: TripletTagger, batch: Mapping[str, Array]) -> Loss:
    """The sum of four parts, for batches of `lessons.tagged_windows.make_batch`.

    Candidates are the right spans and the highest scored wrong ones, so that pairs are learnt
    against the mistakes that the tagger makes now.
    """
    head = model.head
    config = head.config
    layout = Layout(batch["begins"], batch["ends"], batch["title_end"])
    hidden = model.encoder(batch["ids"], batch["mask"]).astype(jnp.float32)
    scores = head.spans(hidden, layout)
    rows = scores.shape[0]
    labels = batch["spans"]
    is_real = scores > _NEVER / 10
    flat = [x.transpose(0, 3, 1, 2).reshape(rows, 3, -1) for x in (scores, labels, is_real)]
    spans = span_loss(flat[0], flat[2] & (flat[1] == RIGHT), flat[2] & (flat[1] == WRONG))
    is_told = (flat[1] == WRONG).any(-1)
    spans = jnp.where(is_told, spans, 0.0).sum(-1)

    offer = jax.lax.stop_gradient(scores)
    offer += jnp.where(labels == RIGHT, _CERTAIN, 0.0) + jnp.where(labels == UNKNOWN, _NEVER, 0.0)
    chosen = (config.num_subjects, config.num_objects, config.num_mentions)
    (subjects, s_scores), (objects, o_scores), (mentions, m_scores) = (
        head.candidates(offer[..., role], number)
        for role, number in zip((SUBJECT, OBJECT, MENTION), chosen)
    )
    pairs, predicates = _open_losses(
        model, hidden, layout, batch, (subjects, s_scores), (objects, o_scores)
    )
    relations = _relation_loss(model, hidden, layout, batch, mentions, m_scores)
    weight = batch["weight"]
    parts = {"spans": spans, "pairs": pairs, "predicates": predicates, "relations": relations}
    sums = {name: (part * weight).sum() for name, part in parts.items()}
    return Loss(sum(sums.values()), weight.sum(), sums)


def _open_losses(
    model: TripletTagger,
    hidden: Array,
    layout: Layout,
    batch: Mapping[str, Array],
    subject_offer: tuple[Array, Array],
    object_offer: tuple[Array, Array],
) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
    head = model.head
    (subjects, s_scores), (objects, o_scores) = subject_offer, object_offer
    scores, states = head.pairs(hidden, layout, subjects, objects, kind=0)
    gold = batch["pairs"]
    is_subject = gold[:, :, None, 0] == subjects[:, None, :]  # [rows, gold, subjects]
    is_object = gold[:, :, None, 1] == objects[:, None, :]
    target = (is_subject[:, :, :, None] & is_object[:, :, None, :]).any(1)
    is_pair = (s_scores > _NEVER / 10)[:, :, None] & (o_scores > _NEVER / 10)[:, None, :]
    is_pair &= (subjects[:, :, None] != objects[:, None, :]) & batch["is_open"][:, None, None]
    pairs = _mean_by_right(scores, target & is_pair, is_pair)

    is_found = is_subject.any(-1) & is_object.any(-1) & (gold[:, :, 0] >= 0)
    place = is_subject.argmax(-1) * objects.shape[1] + is_object.argmax(-1)
    flat = states.reshape(states.shape[0], -1, states.shape[-1])
    # A product: the slope of a gather is a scatter, which is slow on a CPU.
    state = jax.nn.one_hot(place, flat.shape[1], dtype=flat.dtype) @ flat
    object_first = jnp.maximum(gold[:, :, 1], 0) // head.config.max_span
    found = head.predicates(hidden, batch["mask"], state, object_first)
    is_known = is_found & (gold[:, :, 2] >= 0)
    wanted = [jnp.maximum(gold[:, :, 2 + part], 0) for part in range(4)]
    logits = (found.first, found.last, found.prefix, found.suffix)
    losses = sum(
        -jnp.take_along_axis(jax.nn.log_softmax(one), which[..., None], axis=-1)[..., 0]
        for one, which in zip(logits, wanted)
    )
    count = jnp.maximum(is_known.sum(-1), 1)
    return pairs, jnp.where(is_known, losses, 0.0).sum(-1) / count


def _relation_loss(
    model: TripletTagger,
    hidden: Array,
    layout: Layout,
    batch: Mapping[str, Array],
    mentions: Array,
    scores: Array,
) -> Float[Array, " rows"]:
    head = model.head
    _, states = head.pairs(hidden, layout, mentions, mentions, kind=1)
    logits = head.relation(states)
    gold = batch["relations"]
    is_subject = gold[:, :, None, 0] == mentions[:, None, :]
    is_object = gold[:, :, None, 1] == mentions[:, None, :]
    is_found = is_subject.any(-1) & is_object.any(-1) & (gold[:, :, 0] >= 0)
    row = jnp.arange(gold.shape[0])[:, None]
    target = jnp.zeros(logits.shape, bool)
    target = target.at[
        row, is_subject.argmax(-1), is_object.argmax(-1), jnp.maximum(gold[:, :, 2], 0)
    ].max(is_found)
    is_pair = (scores > _NEVER / 10)[:, :, None] & (scores > _NEVER / 10)[:, None, :]
    is_pair &= ~jnp.eye(mentions.shape[1], dtype=bool)
    # Where not all relations are told, only what is told of a pair says anything.
    is_pair &= batch["is_exhaustive"][:, None, None] | target.any(-1)
    return _mean_by_right(logits, target, is_pair[..., None])


def _mean_by_right(scores: Array, target: Array, is_counted: Array) -> Float[Array, " rows"]:
    """Binary cross-entropy, summed over a row and divided by its number of right answers."""
    # log(1 + e^s) - target * s, without overflow.
    losses = jax.nn.softplus(scores) - target * scores
    axes = tuple(range(1, scores.ndim))
    count = jnp.maximum(target.sum(axes), 1)
    return jnp.where(is_counted, losses, 0.0).sum(axes) / count
