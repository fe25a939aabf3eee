"""A language model as the router: one short call a question."""

from collections.abc import Sequence
from dataclasses import dataclass

from triax.records.completions import CompletionRequest, Message
from triax.records.questions import Question
from triax.records.routes import Route, Routing
from triax.records.verbs import Completer

SYSTEM = (
    "Decide how to look up the answer to a question. Say 'vanilla' if one search for passages "
    "that resemble the question will find all that is needed. Say 'graph' if facts of several "
    "passages must be joined, because the question describes something without naming it. Answer "
    "with that one word."
)
SHOTS = (
    ("When did the Battle of Hastings take place?", "vanilla"),
    ("In which country was the composer of the opera Rusalka born?", "graph"),
    ("Are the magazines Wired and Time from the same country?", "vanilla"),
)


@dataclass(frozen=True, slots=True)
class AskedRouter:
    """Asks; an answer that names neither side, and a failed call, go to `otherwise`."""

    completer: Completer
    otherwise: Route = "vanilla"
    max_tokens: int = 4
    name: str = "asked"

    async def route(self, questions: Sequence[Question]) -> list[Routing]:
        """One call a question, all at once."""
        shots = [
            Message(role, text)
            for asked, answered in SHOTS
            for role, text in (("user", f"Question: {asked}"), ("assistant", answered))
        ]
        requests = [
            CompletionRequest(
                messages=(
                    Message("system", SYSTEM),
                    *shots,
                    Message("user", f"Question: {one.text}"),
                ),
                max_tokens=self.max_tokens,
                stage="route",
                question_id=one.id,
            )
            for one in questions
        ]
        completions = await self.completer.complete(requests)
        return [Routing(self._side(one.text)) for one in completions]

    def _side(self, text: str | None) -> Route:
        said = (text or "").casefold()
        places = {side: said.find(side) for side in ("vanilla", "graph")}
        named = {side: place for side, place in places.items() if place >= 0}
        if not named:
            return self.otherwise
        return "graph" if min(named, key=lambda side: named[side]) == "graph" else "vanilla"
