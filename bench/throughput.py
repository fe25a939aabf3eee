"""How fast the shipped models work: chunks extracted, questions answered, in a batch and singly.

    python bench/throughput.py [adapters folder]

Corpus and questions are those of the demo, the encoder is MiniLM. The batch has 64 questions: the
demo's 60 and four of them without their question mark. The figure to compare is the ratio of the
batch to one question at a time, both in this run; absolute figures are of this machine. Everything
is warmed up on the same shapes first.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from triax.corpora.chunks import chunk_documents  # noqa: E402
from triax.corpora.demo_corpus import load_demo  # noqa: E402
from triax.extraction.trained import TrainedExtractor  # noqa: E402
from triax.extraction.verbalize import propositions  # noqa: E402
from triax.indexing.updates import build_index  # noqa: E402
from triax.models.text_encoder import TextEncoder  # noqa: E402
from triax.models.trained_reader import shared_reader  # noqa: E402
from triax.models.trained_writer import shared_writer  # noqa: E402
from triax.pipelines.t2rag import T2RAG  # noqa: E402
from triax.reasoning.trained_decompose import TrainedDecomposer  # noqa: E402
from triax.reasoning.trained_resolve import TrainedResolver  # noqa: E402
from triax.reasoning.trained_synthesize import TrainedSynthesizer  # noqa: E402
from triax.retrieval.adaptive import AdaptiveRetriever  # noqa: E402


def batch_of_64(questions):
    """The questions, and the first of them as other texts, so that no call is made once for two."""
    more = [
        replace(one, id=f"{one.id}-again", text=one.text.removesuffix("?"))
        for one in questions[: 64 - len(questions)]
    ]
    return [*questions, *more]


def timed(run):
    """The result of a call, and its seconds of wall and of processor time."""
    wall, cpu = time.monotonic(), time.process_time()
    value = run()
    return value, time.monotonic() - wall, time.process_time() - cpu


def main() -> None:
    demo = load_demo()
    chunks = chunk_documents(demo.documents)
    questions = batch_of_64(demo.questions)
    extractor = TrainedExtractor()
    read = lambda: asyncio.run(extractor.extract(chunks))  # noqa: E731
    read()
    extractions, wall_s, cpu_s = timed(read)
    report = {
        "cores": os.cpu_count(),
        "chunks": len(chunks),
        "chunks_per_s": len(chunks) / wall_s,
        "chunks_per_cpu_s": len(chunks) / cpu_s,
    }
    encoder = TextEncoder()
    with tempfile.TemporaryDirectory() as folder:
        index = build_index(chunks, propositions(extractions), encoder, Path(folder) / "index")
        writer, reader = shared_writer(), shared_reader()
        pipeline = T2RAG(
            AdaptiveRetriever(index, encoder),
            TrainedDecomposer(writer),
            TrainedResolver(reader),
            TrainedSynthesizer(writer, reader),
        )
        together = lambda: asyncio.run(pipeline.answer(questions))  # noqa: E731
        singly = lambda: [  # noqa: E731
            asyncio.run(pipeline.answer([question])) for question in questions
        ]
        for run in (together, singly):
            run()
        writer.forget()
        traces, batch_s, batch_cpu_s = timed(together)
        writer.forget()
        _, single_s, _ = timed(singly)
    report |= {
        "questions": len(traces),
        "questions_per_s": len(traces) / batch_s,
        "questions_per_cpu_s": len(traces) / batch_cpu_s,
        "batch_to_single": single_s / batch_s,
        "failed": sum(trace.error is not None for trace in traces),
    }
    print(json.dumps({key: round(value, 3) for key, value in report.items()}))


if __name__ == "__main__":
    main()
