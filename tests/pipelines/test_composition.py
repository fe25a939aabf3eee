"""Any retriever in any pipeline, with any reader, compressor and router, over the demo corpus.

Parts come from the YAML files, each assembled once; the language model is a stand-in that answers
each kind of call in its form, so what does not fit together shows as an error.
"""

import asyncio
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate

from triax.corpora.chunks import chunk_documents
from triax.corpora.demo_corpus import load_demo
from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.llm.scripted import ScriptedCompleter
from triax.pipelines.assembly import Parts, assemble
from triax.pipelines.gear import GistRetriever
from triax.pipelines.hybrid import Hybrid
from triax.pipelines.vanilla import Vanilla
from triax.retrieval.compressed import CompressedRetriever

CONF = Path(__file__).parents[2] / "conf"
# Without the trained models, which need weights; they stand where the prompted parts do.
TRAINED = ("trained", "gated_reading")
WORDS = ["name=x", "encoder=hashing", "token_counter=words", "solver=prompted"]
KEYWORDS = '{"high_level_keywords": ["films"], "low_level_keywords": ["Vertigo"]}'
REPORT = '{"title": "T", "summary": "S", "rating": 5, "findings": ["F"]}'
SAYS = {
    "decompose": "Reasoning: one step.\nTriples:\nVertigo | directed by | ?who\n",
    "resolve": "Vertigo | directed by | Hitchcock",
    "filter": '{"triplets": []}',
    "proximal": "Vertigo | directed by | Hitchcock",
    "decide": "enough",
    "think": "So the answer is: Hitchcock.",
    "act": "Thought: I know.\nAction: finish[Hitchcock]",
    "follow_up": "So the final answer is: Hitchcock",
    "map": '{"points": [{"description": "Hitchcock did", "score": 80, "reports": [1]}]}',
    "route": "graph",
    "report": REPORT,
    "keywords": KEYWORDS,
    "summarise": "A summary.",
}


def names(group, *left_out):
    return sorted(p.stem for p in (CONF / group).glob("*.yaml") if p.stem not in left_out)


RETRIEVERS = names("retriever", "compressed")
READERS = names("reader", *TRAINED)
COMPRESSORS = names("compressor")
ROUTERS = names("router", *TRAINED)
PIPELINES = names("pipeline", "hybrid")


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Gives a part by group and name; each is made once."""
    demo = load_demo("dev")
    chunks = chunk_documents(demo.documents)
    encoder = HashingEncoder(256)
    folder = tmp_path_factory.mktemp("composition") / "index"
    index = build_index(chunks, propositions(demo.extractions), encoder, folder, extractor="demo")
    model = ScriptedCompleter(lambda asked: SAYS.get(asked.stage, "FINAL ANSWER: Hitchcock"))
    given = Parts(model, encoder, chunks, lambda: index, lambda: demo.extractions)

    @cache
    def made(group, name):
        GlobalHydra.instance().clear()
        with initialize_config_dir(str(CONF), version_base="1.3"):
            added = "" if group in compose("run", WORDS) else "+"
            # The rules, since the trained classifier needs weights.
            rules = f"question_type@{group}.classifier=regex"
            more = [rules] if name.startswith("by_question_type") else []
            cfg = compose("run", [*WORDS, f"{added}{group}={name}", *more])
        return assemble(instantiate(cfg[group]), given)

    return made, demo.questions[:2]


def refuse_errors(pipeline, questions):
    for trace in asyncio.run(pipeline.answer(questions)):
        assert trace.error is None, f"{pipeline.name}: {trace.error}"
        assert isinstance(trace.answer, str | None)


def has(pipeline, name):
    return name in {one.name for one in fields(pipeline)}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_with_every_reader(name, build):
    made, questions = build
    pipeline = made("pipeline", name)
    refuse_errors(pipeline, questions)
    for reader in READERS if has(pipeline, "reader") else ():
        refuse_errors(replace(pipeline, reader=made("reader", reader)), questions)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_over_every_retriever(name, build):
    made, questions = build
    pipeline = made("pipeline", name)
    for one in RETRIEVERS if has(pipeline, "retriever") else ():
        retriever = made("retriever", one)
        # GeAR's agent asks its retriever for more than a search.
        if name != "gear" or isinstance(retriever, GistRetriever):
            refuse_errors(replace(pipeline, retriever=retriever), questions)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_retriever_under_every_compressor(name, build):
    made, questions = build
    for one in COMPRESSORS:
        inner = made("retriever", name)
        compressed = CompressedRetriever(inner, made("compressor", one), num_fetched=20)
        found = compressed.search([[question.text] for question in questions], 5)
        assert len(found) == len(questions)
        refuse_errors(Vanilla(made("reader", "prompted"), compressed), questions)


@pytest.mark.parametrize("name", ROUTERS)
def test_a_router_before_every_pipeline(name, build):
    made, questions = build
    router, vanilla = made("router", name), made("pipeline", "dense")
    for one in PIPELINES:
        refuse_errors(Hybrid(router, vanilla, made("pipeline", one)), questions)
