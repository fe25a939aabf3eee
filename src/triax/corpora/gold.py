"""Finds the document that a data set means when it names a title or quotes a paragraph."""

from collections.abc import Iterable

from triax.records.documents import Document
from triax.records.text import clean


class GoldIndex:
    """Looks documents up by title and text.

    A title alone is a key only where one document has it: MuSiQue cuts a page into several
    passages of the same title.
    """

    def __init__(self, documents: Iterable[Document]):
        self._by_content: dict[tuple[str, str], str] = {}
        self._by_title: dict[str, list[str]] = {}
        for document in documents:
            self._by_content.setdefault(_key(document.title, document.text), document.id)
            self._by_title.setdefault(_squeeze(document.title), []).append(document.id)

    def find(self, title: str, text: str | None = None) -> str | None:
        """The id by title and text (white space aside), else by a title that one document has."""
        if text is not None and (found := self._by_content.get(_key(title, text))) is not None:
            return found
        named = self._by_title.get(_squeeze(title), [])
        return named[0] if len(named) == 1 else None


def _squeeze(text: str) -> str:
    return " ".join(clean(text).split())


def _key(title: str, text: str) -> tuple[str, str]:
    return (_squeeze(title), _squeeze(text))
