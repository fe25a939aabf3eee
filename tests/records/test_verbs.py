"""The protocols hold for what the house provides, and not for anything else."""

import pytest

from triax.indexing.hashing import HashingEncoder
from triax.llm.scripted import ScriptedCompleter
from triax.pipelines.vanilla import Vanilla
from triax.reasoning.synthesize import PromptedReader
from triax.records.verbs import Completer, Encoder, Extractor, Pipeline, Retriever
from triax.retrieval.original import OriginalRetriever

PROVIDED = {
    Completer: ScriptedCompleter([]),
    Encoder: HashingEncoder(8),
    Retriever: OriginalRetriever({}, [], HashingEncoder(8)),
    Pipeline: Vanilla(PromptedReader(ScriptedCompleter([]))),
}


@pytest.mark.parametrize("verb", [Completer, Encoder, Extractor, Pipeline, Retriever])
def test_each_verb_tells_its_own(verb):
    found = {other for other, thing in PROVIDED.items() if isinstance(thing, verb)}
    assert found == ({verb} & set(PROVIDED))


@pytest.mark.parametrize("thing", [None, "text", object(), len])
@pytest.mark.parametrize("verb", [Completer, Encoder, Extractor, Pipeline, Retriever])
def test_other_things_are_refused(thing, verb):
    assert not isinstance(thing, verb)
