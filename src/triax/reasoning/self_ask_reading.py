"""Self-Ask over a given context: follow-up questions and intermediate answers in one call.

Source: "Measuring and Narrowing the Compositionality Gap" (Press et al., 2023, section 4), as the
reasoning bottleneck (Zarinkia, Srinivasan, Thomo, 2026) runs it: nothing is searched in between;
`pipelines.self_ask` is the one that searches. In our own words.
"""

from triax.reasoning.context import Budget
from triax.reasoning.final_answer import LAST, ThinkingReader
from triax.records.verbs import Completer

SYSTEM = (
    "Answer the question from the context. Say whether follow-up questions are needed; if so, ask "
    "them one at a time, each as `Follow up: ...`, and answer each from the context as "
    f"`Intermediate answer: ...`. Then {LAST}"
)
SHOTS = (
    (
        "Context:\nPassages:\n[1] The Leopard\nThe Leopard is a novel by Giuseppe Tomasi di "
        "Lampedusa.\n[2] Giuseppe Tomasi di Lampedusa\nThe writer was born in Palermo.\n\n"
        "Question: In which city was the author of The Leopard born?",
        "Are follow-up questions needed: yes\nFollow up: Who wrote The Leopard?\nIntermediate "
        "answer: Giuseppe Tomasi di Lampedusa\nFollow up: Where was Giuseppe Tomasi di Lampedusa "
        "born?\nIntermediate answer: Palermo\nFINAL ANSWER: Palermo",
    ),
    (
        "Context:\nPassages:\n[1] Danube\nThe Danube flows into the Black Sea.\n\n"
        "Question: Into which sea does the Danube flow?",
        "Are follow-up questions needed: no\nFINAL ANSWER: the Black Sea",
    ),
)


def self_ask_reader(
    completer: Completer,
    budget: Budget = Budget(),
    max_tokens: int = 2048,
    temperature: float = 0.0,
) -> ThinkingReader:
    """Reads with follow-up questions; arguments as for `ThinkingReader`."""
    return ThinkingReader(completer, SYSTEM, SHOTS, "self_ask", budget, max_tokens, temperature)
