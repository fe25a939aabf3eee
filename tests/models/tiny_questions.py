"""A word-piece tokenizer of a few words, and a writer so small that a test can afford it."""

import jax
import jax.numpy as jnp
from flax import nnx
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.query_vocabulary import QueryVocabulary, QuestionReader
from triax.models.query_writer import QueryWriter, WriterConfig

WORDS = (
    "[PAD] [UNK] [CLS] [SEP] who what where when is was the of born director mother film "
    "vert stal ##igo ##ker afraid s ' , . ? ( ) - or and 1950 a b c"
).split()
VOCABULARY = QueryVocabulary(
    ("max", "none"), ("birth", "born", "date", "director", "of", "##s", "-", "in")
)


def tiny_reader(max_length=24):
    backend = Tokenizer(
        models.WordPiece({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return QuestionReader(backend, max_length)


def tiny_writer(seed=0, scale=1.0):
    """Random weights; a large `scale` makes what it prefers vary from step to step."""
    encoder_config = EncoderConfig("bert", len(WORDS), 16, 1, 2, 32, 32)
    rngs = nnx.Rngs(seed)
    encoder = TransformerEncoder(encoder_config, rngs=rngs)
    config = WriterConfig(len(VOCABULARY), width=16, num_layers=2, num_heads=2, inner_width=32)
    writer = QueryWriter(config, encoder, rngs=rngs)
    graph, state = nnx.split(writer)
    grown = jax.tree.map(lambda x: x * scale if x.dtype == jnp.float32 else x, state)
    return nnx.merge(graph, grown)
