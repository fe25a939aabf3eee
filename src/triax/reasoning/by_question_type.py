"""Routing by question type: each kind of question to the way of reading that suits it.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 3.4):
bridge questions to SPARQL, comparisons and inference to the generic chain, the other one where the
first abstains. Which reader a kind gets is data, because the authors' own figures differ from that
rule on small readers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triax.llm.ask import Reply
from triax.reasoning.synthesize import Reader, Short
from triax.records.evidence import Evidence
from triax.records.question_types import TypeClassifier
from triax.records.questions import Question
from triax.records.usage import Usage

Item = tuple[Question, Evidence]


@dataclass(frozen=True, slots=True)
class ByQuestionType:
    """Asks the readers that a policy names for a question's kind, in turn, until one answers.

    A reader that abstains, or whose answer cannot be read, hands on to the next; a call that
    failed outright does not, so that a later run can make it again.

    classifier: says of which kind a question is.
    readers: by name.
    policy: for each kind the names of readers, first choice first; `otherwise` is for the rest.
    """

    classifier: TypeClassifier
    readers: Mapping[str, Reader]
    policy: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        unknown = {one for names in self.policy.values() for one in names} - set(self.readers)
        if unknown or not self.policy.get("otherwise") or not all(self.policy.values()):
            raise ValueError(
                f"policy names {sorted(unknown) or 'no reader for a kind, or has no `otherwise`'}; "
                f"each kind and `otherwise` need names among {sorted(self.readers)}"
            )

    async def read(self, items: Sequence[Item]) -> list[Reply[Short]]:
        """One answer a question; what all calls cost, the classifier's too, is on its bill."""
        decisions = await self.classifier.classify([question for question, _ in items])
        choices = [self.policy.get(one.kind, self.policy["otherwise"]) for one in decisions]
        replies: list[Reply[Short]] = [Reply(None, one.usage) for one in decisions]
        for turn in range(max(map(len, choices), default=0)):
            waiting: dict[str, list[int]] = {}
            for number, names in enumerate(choices):
                if turn < len(names) and (turn == 0 or _hands_on(replies[number])):
                    waiting.setdefault(names[turn], []).append(number)
            for name, numbers in waiting.items():
                found = await self.readers[name].read([items[number] for number in numbers])
                for number, reply in zip(numbers, found, strict=True):
                    replies[number] = _with(replies[number].usage, reply, replies[number], turn)
        return replies


def _hands_on(reply: Reply[Short]) -> bool:
    return not reply.is_failed and (reply.value is None or reply.value.text is None)


def _with(before: Usage, reply: Reply[Short], last: Reply[Short], turn: int) -> Reply[Short]:
    """The new reply with the cost of all so far; an abstention before is kept over no answer."""
    kept = last if turn and reply.value is None and last.value and not reply.is_failed else reply
    return Reply(kept.value, before + reply.usage, kept.text, kept.error, kept.is_failed)
