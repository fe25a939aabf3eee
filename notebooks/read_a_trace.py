# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How one question is answered
# The demo corpus, its recorded triplets, an encoder of hashed words and gold query triplets: no
# weights are needed. The "model" reads the recorded triplets, so that every step can be followed.

# %%
import asyncio
import io
import os
import tempfile

from rich import print as show
from rich.console import Console

from triax.corpora.chunks import chunk_documents
from triax.corpora.demo_corpus import load_demo
from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.llm.scripted import ScriptedCompleter
from triax.pipelines.t2rag import T2RAG
from triax.reasoning.decompose import GoldDecomposer
from triax.reasoning.resolve import NOT_FOUND, FillingResolver
from triax.reasoning.synthesize import PromptedSynthesizer
from triax.records.text import normalise
from triax.records.trace_json import trace_to_json
from triax.reporting.tree import trace_tree
from triax.retrieval.adaptive import AdaptiveRetriever

# %% [markdown]
# ## From triplets to an index

# %%
demo = load_demo()
chunks = chunk_documents(demo.documents)
found = propositions(demo.extractions)
encoder = HashingEncoder()
index = build_index(chunks, found, encoder, tempfile.mkdtemp() + "/index")
show(len(chunks), "chunks,", len(found), "propositions; the first:", found[0])

# %% [markdown]
# ## A question, its query triplets, and the rounds

# %%
question = next(one for one in demo.questions if one.kind == "bridge")
show(question.text, [str(query) for query in question.gold_query_triplets])


def look_up(request):
    """Stands in for a solver: finds the gap's value among the propositions that it is shown."""
    prompt = request.messages[-1].content
    if request.stage != "resolve":
        return question.answers[0]
    gap = [part.strip() for part in prompt.splitlines()[-1].split(" | ")]
    for one in found:
        if one.text not in prompt:
            continue
        same = [normalise(a) == normalise(b) for a, b in zip(gap, one.triplet.fields, strict=True)]
        if sum(same) == 2 and gap[same.index(False)] == "?":
            return one.triplet.fields[same.index(False)]
    return NOT_FOUND


completer = ScriptedCompleter(look_up)
pipeline = T2RAG(
    AdaptiveRetriever(index, encoder),
    GoldDecomposer(),
    FillingResolver(completer),
    PromptedSynthesizer(completer),
)
[trace] = asyncio.run(pipeline.answer([question]))
show(trace_tree(trace_to_json(trace)))

# %% [markdown]
# With TRIAX_PICTURE=docs/trace.svg in the environment the tree is kept as a picture.

# %%
if os.environ.get("TRIAX_PICTURE"):
    picture = Console(record=True, width=100, file=io.StringIO())
    picture.print(trace_tree(trace_to_json(trace), num_propositions=3))
    picture.save_svg(os.environ["TRIAX_PICTURE"], title="one question, three rounds")

# %%
assert trace.stop_reason == "resolved", trace.stop_reason
