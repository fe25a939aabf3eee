"""Generic chain of thought: sub-questions, their answers, and both together.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 3.2), in
our own words.
"""

from triax.reasoning.context import Budget
from triax.reasoning.final_answer import LAST, ThinkingReader
from triax.records.verbs import Completer

SYSTEM = (
    "Answer the question from the context in three steps.\n"
    "Step 1: Break the question into the smallest sub-questions that lead to its answer.\n"
    "Step 2: Answer each sub-question from the context, in order, in a few words.\n"
    "Step 3: Put these answers together (for a comparison, say what follows from them), then "
    f"{LAST}"
)
SHOTS = (
    (
        "Context:\nPassages:\n[1] Vertigo\nVertigo is a film by Alfred Hitchcock, born on 13 "
        "August 1899.\n[2] Stalker\nStalker is a film by Andrei Tarkovsky, born on 4 April 1932."
        "\n\nQuestion: Which film has the director who was born earlier, Vertigo or Stalker?",
        "Step 1:\n1. When was the director of Vertigo born?\n2. When was the director of Stalker "
        "born?\nStep 2:\n1. Alfred Hitchcock, 13 August 1899\n2. Andrei Tarkovsky, 4 April 1932\n"
        "Step 3: 1899 is before 1932, so it is the director of Vertigo.\nFINAL ANSWER: Vertigo",
    ),
)


def steps_reader(
    completer: Completer,
    budget: Budget = Budget(),
    max_tokens: int = 512,
    temperature: float = 0.0,
) -> ThinkingReader:
    """Reads with a chain of sub-questions; arguments as for `ThinkingReader`."""
    return ThinkingReader(completer, SYSTEM, SHOTS, "steps", budget, max_tokens, temperature)
