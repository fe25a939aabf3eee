"""For pipelines of many rounds: a retriever whose finds can be foreseen, a scripted dialogue."""

from triax.llm.scripted import ScriptedCompleter
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.usage import Usage

CHUNKS = {
    "vertigo": Chunk("vertigo", "d", "Vertigo is a film. Hitchcock made it.", "Vertigo"),
    "hitchcock": Chunk("hitchcock", "d", "He was born in Leytonstone.", "Hitchcock"),
    "stalker": Chunk("stalker", "d", "Stalker is a film by Tarkovsky.", "Stalker"),
}


class ByTitle:
    """Finds the chunks whose title stands in a query, each search for one call's cost.

    The later a title stands in the query, the better. `searches` holds the groups of each search.
    """

    def __init__(self, usage=Usage()):
        self.searches, self.usage = [], usage

    def search(self, groups, num_chunks):
        self.searches.append([list(group) for group in groups])
        return [self._one(group, num_chunks) for group in groups]

    def _one(self, group, num_chunks):
        [query] = group
        places = {chunk: query.lower().rfind(chunk.title.lower()) for chunk in CHUNKS.values()}
        found = sorted((-place, chunk.id) for chunk, place in places.items() if place >= 0)
        chunks = [ScoredChunk(CHUNKS[name], -place / 100) for place, name in found[:num_chunks]]
        return Evidence(tuple(chunks), usage=self.usage)


class Dialogue:
    """A completer that says for each (stage, question) what stands next in its script.

    `batches` holds (stage, question ids) of each call. A script is named `<stage>_<question id>`.
    """

    def __init__(self, **scripts):
        self.model = "dialogue"
        self.batches, self.requests = [], []
        self._lines = {name: iter(lines) for name, lines in scripts.items()}

    async def complete(self, requests):
        [stage] = {request.stage for request in requests}
        self.batches.append((stage, [request.question_id for request in requests]))
        self.requests += requests
        names = [f"{request.stage}_{request.question_id}" for request in requests]
        answers = [next(self._lines[name]) for name in names]
        return await ScriptedCompleter(answers).complete(requests)
