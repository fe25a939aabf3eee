"""A graph of six entities to rank by hand: what six chunks say, and scores and keywords as told.

Relations by row: 0 Ada-Babbage (stated twice), 1 Ada-Cora, 2 Ada-Dorn, 3 Babbage-Cora,
4 Cora-Dorn, 5 Dorn-Elm, 6 Elm-Fenn. Degrees: Ada 3, Babbage 2, Cora 3, Dorn 3, Elm 2, Fenn 1.
"""

import numpy as np

from triax.extraction.verbalize import propositions
from triax.indexing.entity_graph import build_entity_graph
from triax.indexing.tables import TripletTables
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet
from triax.retrieval.keywords import Keywords

SAID = [
    ("c1", "Ada", "met", "Babbage"),
    ("c2", "Ada", "met", "Babbage"),
    ("c2", "Ada", "taught", "Cora"),
    ("c3", "Babbage", "knew", "Cora"),
    ("c3", "Ada", "saw", "Dorn"),
    ("c4", "Cora", "saw", "Dorn"),
    ("c5", "Dorn", "joins", "Elm"),
    ("c5", "Elm", "joins", "Fenn"),
    ("c6", "Ada", "is", "Ada"),
]
CHUNKS = [Chunk(f"c{n}", f"c{n}", "one two three", "") for n in range(1, 7)]
FOUND = propositions([Extraction(chunk, (Triplet(*one),)) for chunk, *one in SAID])
TABLES = TripletTables.of(CHUNKS, FOUND)
GRAPH = build_entity_graph(TABLES)
ADA, BABBAGE, CORA, DORN, ELM, FENN = range(6)


class Given:
    """One row of scores for every text; `asked` holds the texts."""

    def __init__(self, *scores):
        self.row = np.array(scores, np.float32)
        self.asked = []

    def scores(self, groups):
        self.asked += [list(group) for group in groups]
        return np.tile(self.row, (len(groups), 1))


class Told:
    """The same keywords for every query; `asked` holds the queries."""

    def __init__(self, high=("meeting",), low=("Babbage", "Ada"), usage=None):
        self.said = Keywords(tuple(high), tuple(low), *([usage] if usage else []))
        self.asked = []

    def read(self, queries):
        self.asked += queries
        return [self.said] * len(queries)


def chunk_ids(evidence):
    return [found.chunk.id for found in evidence.chunks]


def facts(evidence):
    return [hit.proposition.text for hit in evidence.hits]


def titles(evidence):
    return [found.note.title for found in evidence.notes]
