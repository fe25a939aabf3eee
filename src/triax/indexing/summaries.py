"""Who writes the summary of a cluster of texts: a language model, or a rule that picks sentences.

Source: "RAPTOR" (Sarthi et al., ICLR 2024, section 3), in our own words. The rule takes the
sentences nearest to the centroid of the cluster (Radev et al., 2004) and trades that against their
likeness to what is said already (maximal marginal relevance, Carbonell and Goldstein, 1998).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from triax.extraction.sentences import split_sentences
from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.llm.blocking import run_now
from triax.records.completions import Completion, CompletionRequest
from triax.records.text import clean, normalise
from triax.records.usage import Usage
from triax.records.verbs import Completer, TokenCounter

SYSTEM = (
    "You condense texts that belong together into one short text, which is then searched and read "
    "in place of them. Keep as many of their details as you can: names, dates, numbers, and who or "
    "what is related to whom or what, and how. Name everything by its name, say nothing that the "
    "texts do not say, and leave out headings, introductions and remarks of your own. Write full "
    "sentences, {num_words} words at most."
)
_THINKING = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_WORD = re.compile(r"\w+")
_PARENTHESIS = re.compile(r"(?<=\S) \([^()]*\)\Z")  # "Inception (film)" is named by "Inception"


@dataclass(frozen=True, slots=True)
class Member:
    """One of the texts that are summarised together; "" where it has no title."""

    text: str
    title: str = ""

    @property
    def shown(self) -> str:
        """Title, line feed, text."""
        return f"{self.title}\n{self.text}".strip()


@runtime_checkable
class Summarizer(Protocol):
    """Summarises many clusters of texts; a failed one is a reply without a value."""

    @property
    def config(self) -> Mapping[str, Any]: ...

    def summarise(self, clusters: Sequence[Sequence[Member]]) -> list[Reply[str]]: ...


@dataclass(frozen=True, slots=True)
class PromptedSummarizer:
    """Asks a language model about each cluster; an empty answer is asked for once more.

    Args:
        completer: the language model.
        max_tokens: of a summary. An answer that reaches it is kept as far as it goes.
    """

    completer: Completer
    max_tokens: int = 100

    @property
    def config(self) -> dict[str, Any]:
        """What decides a summary (R28)."""
        return {
            "kind": "prompted",
            "completer": dict(getattr(self.completer, "identity", {"model": self.completer.model})),
            "prompt": SYSTEM,
            "max_tokens": self.max_tokens,
        }

    def summarise(self, clusters: Sequence[Sequence[Member]]) -> list[Reply[str]]:
        """One call a cluster, all at once; blocks until all answers are there."""
        if not clusters:
            return []
        # A word of English is about 4/3 tokens.
        system = SYSTEM.format(num_words=max(1, self.max_tokens * 3 // 4))
        requests = [
            CompletionRequest(
                conversation(system, (), "\n\n".join(member.shown for member in members)),
                self.max_tokens,
                stage="summarise",
            )
            for members in clusters
        ]
        return run_now(ask(self.completer, requests, _read))


@dataclass(frozen=True, slots=True)
class ExtractiveSummarizer:
    """Needs no language model: the most central sentences of the cluster, in their order.

    A sentence of a titled text that does not name its title is shown as "title: sentence", since
    what "he" or "the film" means is lost elsewhere.

    Args:
        counter: counts tokens.
        max_tokens: of a summary.
        relevance: weight of a sentence's likeness to the whole cluster, 0 to 1; the rest weighs
            against its likeness to a sentence that is in already.
    """

    counter: TokenCounter
    max_tokens: int = 100
    relevance: float = 0.7

    @property
    def config(self) -> dict[str, Any]:
        """What decides a summary (R28)."""
        return {
            "kind": "extractive",
            "counter": getattr(self.counter, "model", None) or repr(self.counter),
            "max_tokens": self.max_tokens,
            "relevance": self.relevance,
        }

    def summarise(self, clusters: Sequence[Sequence[Member]]) -> list[Reply[str]]:
        """One summary a cluster; it is empty only where the texts or the budget are."""
        return [Reply(self._summary(members), Usage()) for members in clusters]

    def _summary(self, members: Sequence[Member]) -> str:
        sentences = list(dict.fromkeys(one for member in members for one in _sentences(member)))
        if not sentences:
            return self.counter.cut(" ".join(member.shown for member in members), self.max_tokens)
        tokens = np.array(self.counter.count(sentences))
        weights = _weights(sentences)
        centroid = weights.mean(axis=0)
        likeness = weights @ (centroid / np.linalg.norm(centroid))
        chosen = self._chosen(likeness, weights @ weights.T, tokens)
        if not chosen:
            return self.counter.cut(sentences[int(np.round(likeness, 9).argmax())], self.max_tokens)
        return " ".join(sentences[place] for place in sorted(chosen))

    def _chosen(
        self,
        likeness: Float64[np.ndarray, "sentences"],
        mutual: Float64[np.ndarray, "sentences sentences"],
        tokens: np.ndarray,
    ) -> list[int]:
        """Places of sentences, the best that fits first, ties by place."""
        said = np.zeros(len(likeness))
        chosen, left = [], self.max_tokens
        is_open = tokens <= left
        while is_open.any():
            gains = self.relevance * likeness - (1 - self.relevance) * said
            best = int(np.where(is_open, np.round(gains, 9), -np.inf).argmax())
            chosen.append(best)
            left -= int(tokens[best])
            said = np.maximum(said, mutual[best])
            is_open[best] = False
            is_open &= tokens <= left
        return chosen


def _read(_: int, completion: Completion) -> str:
    text = completion.text or ""
    if thinking := _THINKING.match(text):
        text = text[thinking.end() :]
    if summary := " ".join(clean(text).split()):
        return summary
    raise Unreadable("it is empty; expected a summary in full sentences")


def _sentences(member: Member) -> list[str]:
    title = " ".join(member.title.split())
    name = normalise(_PARENTHESIS.sub("", title))
    return [
        (sentence if name in normalise(sentence) else f"{title}: {sentence}")
        + ("." if sentence[-1].isalnum() else "")
        for sentence in split_sentences(member.text)
    ]


def _weights(sentences: Sequence[str]) -> Float64[np.ndarray, "sentences terms"]:
    """TF-IDF of the words of sentences, rows of length 1; English stop words count where alone."""
    try:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
    except ImportError as error:
        raise ImportError(
            f"sentences are weighed by scikit-learn, which cannot be imported ({error}); "
            "pip install 'triax[systems]'"
        ) from error

    def words(sentence: str) -> list[str]:
        found = _WORD.findall(sentence.lower())
        return [word for word in found if word not in ENGLISH_STOP_WORDS] or found

    return TfidfVectorizer(analyzer=words, sublinear_tf=True).fit_transform(sentences).toarray()
