"""Cuts documents into overlapping windows of tokens with exact character positions."""

import re
from collections.abc import Callable, Iterable, Sequence

from tokenizers import Tokenizer

from triax.records.documents import Chunk, Document

Spans = Callable[[str], Sequence[tuple[int, int]]]
"""Gives the character spans (start, end) of a text's tokens, in order."""

# Chinese, Japanese and Korean write no blanks, so each of their signs counts as a token; a word of
# another script counts once for each 16 letters; every other mark counts by itself.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]{{1,16}}|[^\w\s]")


def word_spans(text: str) -> list[tuple[int, int]]:
    """The default tokens, which need no download.

    A token is a word, each 16 letters of a longer one, one sign of a script that writes no blanks,
    or one punctuation mark. English has about 1.3 tokens of a language model to one of these.

    >>> [text[a:b] for text in ["Mr. O'Neil, 1887"] for a, b in word_spans(text)]
    ['Mr', '.', 'O', "'", 'Neil', ',', '1887']
    """
    return [match.span() for match in _TOKEN.finditer(text)]


def chunk_documents(
    documents: Iterable[Document],
    tokenizer: Tokenizer | Spans | None = None,
    size: int = 1200,
    overlap: int = 100,
) -> list[Chunk]:
    """Windows of `size` tokens of which `overlap` are shared with the one before.

    The defaults are those of the experiments in T2RAG. A document that fits is one chunk with the
    document's own id; others give `<id>#0`, `<id>#1` and so on. A chunk's text is
    `document.text[chunk.start : chunk.start + len(chunk.text)]`; what lies outside all chunks is
    white space. A document without tokens gives none.

    Tokens are those of the whole document. A sub-word tokenizer may cut the first and last word of
    a window differently when it sees the window alone, so leave an encoder a little room.

    Args:
        documents: what is cut.
        tokenizer: a `tokenizers.Tokenizer`, or a function that gives the spans of tokens, or None
            for `word_spans`.
        size: tokens in a window, at most.
        overlap: tokens that two neighbours share, exactly.

    Raises:
        ValueError: not 0 <= overlap < size, or two chunks come to the same id.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"size {size} and overlap {overlap}; expected 0 <= overlap < size")
    spans = _spans_of(tokenizer)
    chunks: list[Chunk] = []
    seen: set[str] = set()
    for document in documents:
        for chunk in _cut(document, spans(document.text), size, overlap):
            if chunk.id in seen:
                raise ValueError(
                    f"two chunks have the id {chunk.id!r}; give the documents ids that differ and "
                    "do not end in #<number>"
                )
            seen.add(chunk.id)
            chunks.append(chunk)
    return chunks


def _cut(
    document: Document, spans: Sequence[tuple[int, int]], size: int, overlap: int
) -> list[Chunk]:
    text = document.text
    if not spans or not text.strip():
        return []
    if len(spans) <= size:
        return [Chunk(document.id, document.id, text, document.title)]
    chunks: list[Chunk] = []
    for first in range(0, len(spans) - overlap, size - overlap):
        # From the start of the first token to the start of the token after the last, less the
        # white space at both ends: so nothing that a tokenizer passes over is lost between two.
        start = spans[first][0] if first else 0
        end = spans[first + size][0] if first + size < len(spans) else len(text)
        window = text[start:end]
        start += len(window) - len(window.lstrip())
        if piece := window.strip():
            name = f"{document.id}#{len(chunks)}"
            chunks.append(Chunk(name, document.id, piece, document.title, start))
    return chunks


def _spans_of(tokenizer: Tokenizer | Spans | None) -> Spans:
    if tokenizer is None:
        return word_spans
    if not isinstance(tokenizer, Tokenizer):
        return tokenizer
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        # Truncation would silently drop the end of every long document. The caller's own object
        # keeps its setting.
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
    fixed = tokenizer
    return lambda text: fixed.encode(text, add_special_tokens=False).offsets
