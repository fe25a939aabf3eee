"""A span-pair extractor: an encoder, and a head that finds spans, pairs them and names the pair.

Spans are scored by their two ends with one bilinear form a role (Global Pointer: Su et al. 2022,
section 3, with a learned bias of the width in place of rotary positions). The best candidates of
each role are paired, and pairs are scored by a biaffine form (Dozat and Manning 2017, section 2)
and a small network (as in SpERT: Eberts and Ulges 2020, section 3). An open pair (subject, object)
gets a predicate of three parts: a prefix and a suffix from closed lists and a span of the text,
found by a pointer. A pair of entity mentions gets any number of named relations.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from triax.models.encoder import TransformerEncoder

SUBJECT, OBJECT, MENTION = 0, 1, 2
_NEVER = -1e9
_NUM_DISTANCES = 16
_REACH = 32  # tokens left and right of an object that the pointer tells apart


@dataclass(frozen=True, slots=True)
class TaggerConfig:
    """Sizes of the head.

    `max_span` is the longest span in tokens; `num_subjects`, `num_objects` and `num_mentions` are
    the candidates kept of each role, `num_pairs` the open pairs that get a predicate.
    """

    num_prefixes: int
    num_suffixes: int
    num_relations: int
    width: int = 384
    span_width: int = 64
    pair_width: int = 128
    max_span: int = 24
    num_subjects: int = 24
    num_objects: int = 40
    num_mentions: int = 32
    num_pairs: int = 48

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


class Layout(NamedTuple):
    """What the head must know of the tokens: where words begin and end, and the title's end."""

    begins: Bool[Array, "batch length"]
    ends: Bool[Array, "batch length"]
    title_end: Int[Array, " batch"]


class Predicates(NamedTuple):
    """Logits of the parts of a predicate; place 0 ([CLS]) of both pointers: nothing is copied."""

    prefix: Float[Array, "batch pairs prefixes"]
    suffix: Float[Array, "batch pairs suffixes"]
    first: Float[Array, "batch pairs length"]
    last: Float[Array, "batch pairs length"]


class Tagged(NamedTuple):
    """What the tagger sees in a batch, best first. A span is (first token, last token).

    `pair_scores` and `relation_scores` are logits; a pair of candidates that are not there has a
    score below -1e8. `subject` and `object` are the spans of the `num_pairs` best open pairs.
    """

    subject: Int[Array, "batch pairs 2"]
    object: Int[Array, "batch pairs 2"]
    pair_scores: Float[Array, "batch pairs"]
    prefix: Int[Array, "batch pairs"]
    suffix: Int[Array, "batch pairs"]
    copied: Int[Array, "batch pairs 2"]
    mentions: Int[Array, "batch mentions 2"]
    relation_scores: Float[Array, "batch mentions mentions relations"]


class TripletHead(nnx.Module):
    """All that is trained from scratch, on top of token vectors."""

    def __init__(self, config: TaggerConfig, *, rngs: nnx.Rngs):
        """Random weights."""
        self.config = config
        width, inner, pair = config.width, config.span_width, config.pair_width
        self.first = nnx.Linear(width, 3 * inner, rngs=rngs)
        self.last = nnx.Linear(width, 3 * inner, rngs=rngs)
        self.first_bias = nnx.Linear(width, 3, rngs=rngs)
        self.last_bias = nnx.Linear(width, 3, rngs=rngs)
        small = nnx.initializers.normal(0.02)
        self.width_bias = nnx.Embed(config.max_span, 3, embedding_init=small, rngs=rngs)
        # Both ends of a subject, an object, a relation's subject and a relation's object.
        self.span_first = nnx.Linear(width, 4 * pair, rngs=rngs)
        self.span_last = nnx.Linear(width, 4 * pair, rngs=rngs)
        self.distance = nnx.Embed(_NUM_DISTANCES, 2 * pair, embedding_init=small, rngs=rngs)
        self.affine = nnx.Linear(pair, pair, rngs=rngs)
        self.pair_score = nnx.Linear(pair, 1, rngs=rngs)
        self.pair_state = nnx.Linear(pair, pair, rngs=rngs)
        self.prefix = nnx.Linear(pair, config.num_prefixes, rngs=rngs)
        self.suffix = nnx.Linear(pair, config.num_suffixes, rngs=rngs)
        self.pointer_query = nnx.Linear(pair, 2 * pair, rngs=rngs)
        self.pointer_key = nnx.Linear(width, 2 * pair, rngs=rngs)
        self.pointer_bias = nnx.Embed(2 * _REACH + 1, 2, embedding_init=small, rngs=rngs)
        self.relation = nnx.Linear(pair, config.num_relations, rngs=rngs)
        # Nearly all pairs are related in no way; the loss need not find that out first.
        self.pair_score.bias[...] = jnp.full_like(self.pair_score.bias[...], -3.0)
        self.relation.bias[...] = jnp.full_like(self.relation.bias[...], -7.0)

    def spans(
        self, hidden: Float[Array, "batch length width"], layout: Layout
    ) -> Float[Array, "batch length max_span roles"]:
        """Logit of each span (first token, width - 1) in each role; -1e9 where none can be."""
        batch, length, _ = hidden.shape
        widest = self.config.max_span
        shape = (batch, length, 3, self.config.span_width)
        first, last = self.first(hidden).reshape(shape), self.last(hidden).reshape(shape)
        scores = jnp.einsum("bird,bjrd->brij", first, last) * self.config.span_width**-0.5
        scores += self.last_bias(hidden).transpose(0, 2, 1)[:, :, None, :]
        banded = _band(scores, widest).transpose(0, 2, 3, 1)
        banded += self.first_bias(hidden)[:, :, None, :]
        banded += self.width_bias(jnp.arange(widest))
        return jnp.where(_is_span(layout, widest)[..., None], banded, _NEVER)

    def candidates(
        self, scores: Float[Array, "batch length max_span"], number: int
    ) -> tuple[Int[Array, "batch number"], Float[Array, "batch number"]]:
        """Flat numbers (first * max_span + width - 1) of the best spans, and their scores."""
        values, flat = jax.lax.top_k(scores.reshape(scores.shape[0], -1), number)
        return flat, values

    def pairs(
        self,
        hidden: Float[Array, "batch length width"],
        layout: Layout,
        subjects: Int[Array, "batch subjects"],
        objects: Int[Array, "batch objects"],
        kind: int,
    ) -> tuple[Float[Array, "batch subjects objects"], Float[Array, "batch subjects objects pair"]]:
        """The biaffine score of each pair, and its state for further questions.

        Args:
            hidden: token vectors.
            layout: of the tokens.
            subjects: flat numbers of spans.
            objects: flat numbers of spans.
            kind: 0 for open pairs, 1 for pairs of mentions.
        """
        pair = self.config.pair_width
        sides = []
        for side, flat in ((0, subjects), (1, objects)):
            start = (2 * kind + side) * pair
            part = slice(start, start + pair)
            first, last = self.places(flat)
            left = _linear_part(self.span_first, _take(hidden, first), part)
            right = _linear_part(self.span_last, _take(hidden, last), part)
            sides.append(left + right)
        subject, other = sides
        subject_first, _ = self.places(subjects)
        object_first, _ = self.places(objects)
        bucket = _distances(subject_first, object_first, layout.title_end)
        near = _rows(self.distance, bucket, slice(kind * pair, (kind + 1) * pair))
        left, right = subject[:, :, None], other[:, None, :]
        state = jax.nn.gelu(left + right + left * right + near)
        if kind == 1:
            return jnp.zeros(state.shape[:3]), state
        affine = jnp.einsum("bsp,bop->bso", self.affine(jax.nn.gelu(subject)), jax.nn.gelu(other))
        return affine * pair**-0.5 + self.pair_score(state)[..., 0], state

    def predicates(
        self,
        hidden: Float[Array, "batch length width"],
        mask: Bool[Array, "batch length"],
        states: Float[Array, "batch pairs pair"],
        object_first: Int[Array, "batch pairs"],
    ) -> Predicates:
        """What is said of the pairs with these states, whose objects begin at these tokens."""
        state = jax.nn.gelu(self.pair_state(states))
        batch, count, pair = state.shape
        length = hidden.shape[1]
        query = self.pointer_query(state).reshape(batch, count, 2, pair)
        key = self.pointer_key(hidden).reshape(batch, length, 2, pair)
        scores = jnp.einsum("bpkd,btkd->kbpt", query, key) * pair**-0.5
        offset = jnp.arange(length) - object_first[..., None]
        bias = _rows(self.pointer_bias, jnp.clip(offset, -_REACH, _REACH) + _REACH, slice(None))
        scores += bias.transpose(3, 0, 1, 2)
        scores = jnp.where(mask[:, None, :], scores, _NEVER)
        return Predicates(self.prefix(state), self.suffix(state), scores[0], scores[1])

    def places(
        self, flat: Int[Array, "batch spans"]
    ) -> tuple[Int[Array, "batch spans"], Int[Array, "batch spans"]]:
        """First and last token of flat span numbers."""
        first, width = jnp.divmod(flat, self.config.max_span)
        return first, first + width


class TripletTagger(nnx.Module):
    """Encoder and head; `head` and the adapters of the encoder are what is trained."""

    def __init__(self, encoder: TransformerEncoder, config: TaggerConfig, *, rngs: nnx.Rngs):
        """Puts a fresh head on an encoder of `config.width`."""
        self.encoder = encoder
        self.head = TripletHead(config, rngs=rngs)

    def __call__(
        self,
        ids: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        layout: Layout,
    ) -> Tagged:
        """The best open pairs with their predicates, and all relations of the best mentions."""
        head, config = self.head, self.head.config
        hidden = self.encoder(ids, mask).astype(jnp.float32)
        scores = head.spans(hidden, layout)
        chosen = (config.num_subjects, config.num_objects, config.num_mentions)
        (subjects, s_scores), (objects, o_scores), (mentions, m_scores) = (
            head.candidates(scores[..., role], number) for role, number in enumerate(chosen)
        )
        open_scores, states = head.pairs(hidden, layout, subjects, objects, kind=0)
        is_pair = _are_both(s_scores, o_scores) & (subjects[:, :, None] != objects[:, None, :])
        open_scores = jnp.where(is_pair, open_scores, _NEVER)
        flat_scores = open_scores.reshape(open_scores.shape[0], -1)
        best, place = jax.lax.top_k(flat_scores, config.num_pairs)
        row, column = jnp.divmod(place, config.num_objects)
        subject, other = (
            jnp.take_along_axis(flat, where, axis=1)
            for flat, where in ((subjects, row), (objects, column))
        )
        state = _take(states.reshape(states.shape[0], -1, states.shape[-1]), place)
        found = head.predicates(hidden, mask, state, head.places(other)[0])
        copied = best_copies(found.first, found.last, layout, config.max_span)
        # Something must be said: where nothing is copied, the prefix is not the empty one.
        is_copied = copied[..., 0] > 0
        worded = found.prefix[..., 1:].argmax(-1) + 1
        _, related = head.pairs(hidden, layout, mentions, mentions, kind=1)
        is_related = _are_both(m_scores, m_scores) & ~jnp.eye(config.num_mentions, dtype=bool)
        return Tagged(
            jnp.stack(head.places(subject), -1),
            jnp.stack(head.places(other), -1),
            best,
            jnp.where(is_copied, found.prefix.argmax(-1), worded),
            jnp.where(is_copied, found.suffix.argmax(-1), 0),
            copied,
            jnp.stack(head.places(mentions), -1),
            jnp.where(is_related[..., None], head.relation(related), _NEVER),
        )


def best_copies(
    first: Float[Array, "batch pairs length"],
    last: Float[Array, "batch pairs length"],
    layout: Layout,
    widest: int,
) -> Int[Array, "batch pairs 2"]:
    """The span of whole words with the highest sum of both logits; (0, 0) for nothing copied.

    The best first token is taken with the best last token behind it, which differs from the best
    pair only where the two pointers disagree.
    """
    length = first.shape[-1]
    place = jnp.arange(length)
    may_begin = layout.begins | (place == 0)
    start = jnp.where(may_begin[:, None, :], first, _NEVER).argmax(-1)
    behind = (place >= start[..., None]) & (place < start[..., None] + widest)
    stop = jnp.where(behind & layout.ends[:, None, :], last, _NEVER).argmax(-1)
    stop = jnp.where(start == 0, 0, jnp.maximum(stop, start))
    return jnp.stack([start, stop], -1)


def _band(scores: Float[Array, "*b length length"], widest: int) -> Float[Array, "*b length max"]:
    """out[..., i, w] = scores[..., i, i + w], 0 outside, by pad and reshape instead of a gather."""
    *lead, length, _ = scores.shape
    none = [(0, 0)] * len(lead)
    flat = jnp.pad(scores, [*none, (0, 0), (0, widest)]).reshape(*lead, -1)
    flat = jnp.pad(flat, [*none, (0, length)])
    return flat.reshape(*lead, length, length + widest + 1)[..., :widest]


def _is_span(layout: Layout, widest: int) -> Bool[Array, "batch length max_span"]:
    """Whole words on one side of the title's end."""
    batch, length = layout.begins.shape
    last = jnp.arange(length)[:, None] + jnp.arange(widest)
    ends = jnp.pad(layout.ends, ((0, 0), (0, widest)))[:, last]
    border = layout.title_end[:, None, None]
    is_split = (jnp.arange(length)[:, None] < border) & (last >= border)
    return layout.begins[..., None] & ends & ~is_split


def _take(x: Float[Array, "batch rows width"], rows: Int[Array, "batch n"]) -> Array:
    # A product with one-hot rows: the slope of a gather is a scatter, which is slow on a CPU.
    return jax.nn.one_hot(rows, x.shape[1], dtype=x.dtype) @ x


def _rows(table: nnx.Embed, rows: Array, part: slice) -> Array:
    """Rows of a small table, some of its columns; by a product, as in `_take`."""
    weights = table.embedding[...][:, part]
    return jax.nn.one_hot(rows, weights.shape[0], dtype=weights.dtype) @ weights


def _linear_part(layer: nnx.Linear, x: Array, part: slice) -> Array:
    """Some of the outputs of a layer."""
    return x @ layer.kernel[...][:, part] + layer.bias[...][part]


def _are_both(left: Array, right: Array) -> Array:
    return (left > _NEVER / 10)[:, :, None] & (right > _NEVER / 10)[:, None, :]


def _distances(
    subject: Int[Array, "batch subjects"],
    other: Int[Array, "batch objects"],
    title_end: Int[Array, " batch"],
) -> Int[Array, "batch subjects objects"]:
    """Bucket of the tokens between two spans: 0 to 6 left and 7 to 13 right in powers of two; 14
    where the subject stands in the title, 15 where only the object does.
    """
    gap = other[:, None, :] - subject[:, :, None]
    size = jnp.clip(jnp.log2(jnp.maximum(jnp.abs(gap), 1)).astype(jnp.int32), 0, 6)
    bucket = size + 7 * (gap > 0)
    in_title = [flat < title_end[:, None] for flat in (subject, other)]
    bucket = jnp.where(in_title[1][:, None, :], 15, bucket)
    return jnp.where(in_title[0][:, :, None], 14, bucket)
