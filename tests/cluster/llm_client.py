"""Asks servers questions whose answer their grammar fixes, as a job of a test.

    python tests/cluster/llm_client.py MODEL NAME COUNT [JOB]

Answers and ledger go to NAME-<task>.jsonl and NAME-<task>.calls.jsonl, the cache to NAME-<task>.db.
"""

import asyncio
import logging
import os
import sys

from triax.llm.cache import CachedCompleter
from triax.llm.fleet import FleetCompleter
from triax.llm.ledger import Ledger, LedgerCompleter
from triax.records.completions import CompletionRequest, Grammar, Message
from triax.records.files import write_jsonl

logging.basicConfig(level=logging.INFO)


def request(number):
    return CompletionRequest(
        (Message("user", f"say {number}"),),
        max_tokens=200,
        grammar=Grammar("regex", f"[a-z]{{40}} {number}"),
        question_id=str(number),
    )


def main(model, name, count, job=None):
    name = f"{name}-{os.environ.get('SLURM_ARRAY_TASK_ID', 0)}"
    fleet = FleetCompleter(
        model,
        os.environ["TRIAX_ENDPOINTS"],
        job,
        wait_s=float(os.environ["WAIT_S"]),
        max_concurrent=2,
        poll_s=0.5,
        structured="llama_cpp",
    )
    cached = CachedCompleter(fleet, f"{name}.db")
    completer = LedgerCompleter(cached, Ledger(f"{name}.calls.jsonl"))
    answers = asyncio.run(completer.complete([request(number) for number in range(int(count))]))
    host = os.uname().nodename
    write_jsonl(
        f"{name}.jsonl",
        (
            {"number": number, "text": one.text, "error": one.error, "host": host}
            for number, one in enumerate(answers)
        ),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
