"""Reports of the communities of an index, from the smallest up to the widest, as in GraphRAG.

    reports.jsonl   one row a community, in the order in which they were written

A kill costs one batch. A report that the language model failed to write is replaced by the
extractive one, and its row says why; where too many fail, the build ends with an error and keeps
what it has.

Source: "From Local to Global" (Edge et al., 2024, section 3.1.5) and GraphRAG 3.1.2.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from triax.indexing.communities import Clustering, Communities, find_communities
from triax.indexing.derived import open_derived
from triax.indexing.entity_graph import EntityGraph, build_entity_graph
from triax.indexing.reporters import ExtractiveReporter, Fact, Material, Part, Reporter
from triax.indexing.store import TripletIndex
from triax.indexing.tables import TripletTables
from triax.records.trace_json import usage_from_json, usage_to_json
from triax.records.usage import Usage
from triax.records.verbs import TokenCounter
from triax.runs.items import ItemLog
from triax.tracking.progress import track

KIND = "reports"
FILE = "reports.jsonl"
_log = logging.getLogger(__name__)


class ReportError(RuntimeError):
    """Too many reports could not be written."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of one community.

    id: follows from its members.
    level: 0 for the widest.
    parent: the id of the community that it is a part of, "" at level 0.
    rating: how much it matters, 0 to 10.
    entities: rows of its members in the index's `EntityGraph`, ascending.
    chunk_ids: what the report was made of, best first.
    error: why the language model's report was replaced by the extractive one; "" where it was not.
    """

    id: str
    level: int
    parent: str
    title: str
    summary: str
    rating: float
    findings: tuple[str, ...]
    entities: tuple[int, ...]
    chunk_ids: tuple[str, ...]
    error: str = ""

    @property
    def text(self) -> str:
        """Summary and findings, one a line."""
        return "\n".join(filter(None, [self.summary, *self.findings]))

    @property
    def shown(self) -> str:
        """Title and text."""
        return f"{self.title}\n{self.text}".strip()


@dataclass(frozen=True, slots=True)
class CommunityReports:
    """All reports of an index, by level, then by their first entities; and what they cost."""

    reports: tuple[Report, ...]
    index_cost: Usage = Usage()

    @property
    def num_failed(self) -> int:
        """Reports that the language model failed to write."""
        return sum(bool(report.error) for report in self.reports)

    def at(self, max_level: int) -> tuple[Report, ...]:
        """Those of the levels 0 to `max_level`."""
        return tuple(report for report in self.reports if report.level <= max_level)


def open_reports(
    index: TripletIndex,
    reporter: Reporter,
    counter: TokenCounter,
    clustering: Clustering,
    batch_size: int = 64,
    max_failed: float = 0.05,
) -> CommunityReports:
    """The reports of an index; written the first time, taken up again after a kill (R4).

    Args:
        index: whose triplets are clustered.
        reporter: writes them.
        counter: counts tokens for the reporter's budget.
        clustering: of the entities.
        batch_size: reports that are asked for together; the most that a kill loses.
        max_failed: the largest share of reports that may have failed.

    Raises:
        ReportError: more failed. The next call asks again for those whose calls failed.
        ImportError: graspologic-native is not installed.
    """
    settings = {
        "reporter": dict(reporter.config),
        "counter": getattr(counter, "model", None) or repr(counter),
        "clustering": asdict(clustering),
    }

    def build(folder: Path) -> Usage:
        book = _Book.of(index.tables, clustering, counter, folder / FILE)
        book.write(reporter, batch_size, max_failed)
        return sum((usage_from_json(row["usage"]) for row in book.rows.values()), Usage())

    found = open_derived(index, KIND, settings, build)
    rows = ItemLog(found.folder / FILE).rows().values()
    ordered = sorted(map(_from_row, rows), key=lambda one: (one.level, one.entities))
    reports = CommunityReports(tuple(ordered), found.cost)
    if reports.num_failed:
        _log.warning("%d of %d reports failed", reports.num_failed, len(ordered))
    return reports


@dataclass(frozen=True, slots=True)
class _Facts:
    """All facts of a graph in one order, each with its two entities.

    Those of a relation stand together, relations by the sum of their entities' degrees, then by
    weight. Behind them come the mentions of entities without a relation; both ends are the entity.
    """

    facts: tuple[Fact, ...]
    heads: Int64[np.ndarray, "facts"]
    tails: Int64[np.ndarray, "facts"]

    @classmethod
    def of(cls, graph: EntityGraph, tables: TripletTables, counter: TokenCounter) -> "_Facts":
        counts, degrees = np.diff(tables.sources.offsets), graph.degrees
        relations, rows = graph.statements.nonzero()
        heads, tails = graph.heads[relations], graph.tails[relations]
        connected = degrees[heads] + degrees[tails]
        order = np.lexsort((rows, -counts[rows], relations, -graph.weights[relations], -connected))
        alone, mentioned = graph.mentions.nonzero()
        kept = degrees[alone] == 0
        alone, mentioned = alone[kept], mentioned[kept]
        behind = np.lexsort((mentioned, -counts[mentioned], alone))
        texts = tables.propositions["text"].to_pylist()
        tokens, ids = counter.count(texts), tables.chunks["id"].to_pylist()
        facts = tuple(
            Fact(texts[row], tokens[row], tuple(ids[c] for c in tables.sources.of(row).tolist()))
            for row in [*rows[order].tolist(), *mentioned[behind].tolist()]
        )
        ends = (np.concatenate([one[order], alone[behind]]) for one in (heads, tails))
        return cls(facts, *(one.astype(np.int64) for one in ends))


@dataclass(frozen=True, slots=True)
class _Book:
    """Reports that are being written: what they are made of, and the rows that are there."""

    graph: EntityGraph
    communities: Communities
    ids: tuple[str, ...]
    facts: _Facts
    counter: TokenCounter
    log: ItemLog
    rows: dict[str, dict[str, Any]]

    @classmethod
    def of(
        cls, tables: TripletTables, clustering: Clustering, counter: TokenCounter, path: Path
    ) -> "_Book":
        graph = build_entity_graph(tables)
        communities = find_communities(graph, clustering)
        ids = tuple(_id(graph, communities, row) for row in range(len(communities.levels)))
        facts, log = _Facts.of(graph, tables, counter), ItemLog(path)
        return cls(graph, communities, ids, facts, counter, log, log.rows())

    def write(self, reporter: Reporter, batch_size: int, max_failed: float) -> None:
        """Writes what is not written, the deepest level first; failed calls are made again."""
        done = {key for key, row in self.rows.items() if not row["is_failed"]}
        with track("community reports", len(self.ids)) as progress:
            for level in range(int(self.communities.levels.max(initial=-1)), -1, -1):
                at_level = np.flatnonzero(self.communities.levels == level).tolist()
                left = [row for row in at_level if self.ids[row] not in done]
                materials = dict(self._materials(level, left))
                for start in range(0, len(left), batch_size):
                    batch = left[start : start + batch_size]
                    self._write(reporter, {row: materials[row] for row in batch})
                    done |= {self.ids[row] for row in batch}
                    progress(len(done))
                    self._refuse(done, max_failed)
        # Also where nothing was left to write: what could not be read is not asked for again.
        self._refuse(done, max_failed)

    def _materials(self, level: int, wanted: Sequence[int]) -> Iterator[tuple[int, Material]]:
        """Facts with both ends in a community are its own, and those of its parts theirs too."""
        facts, communities = self.facts, self.communities
        owners, inner = (
            np.where(labels[facts.heads] == labels[facts.tails], labels[facts.heads], -1)
            for labels in (communities.labels(level), communities.labels(level + 1))
        )
        order = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[order], np.arange(len(self.ids) + 1))
        for row in wanted:
            children = np.flatnonzero(communities.parents == row).tolist()
            place = {child: number for number, child in enumerate(children)}
            yield (
                row,
                Material(
                    self._names(row),
                    tuple(
                        replace(facts.facts[one], part=place.get(int(inner[one])))
                        for one in order[starts[row] : starts[row + 1]].tolist()
                    ),
                    self._parts([_from_row(self.rows[self.ids[child]]) for child in children]),
                ),
            )

    def _names(self, row: int) -> tuple[str, ...]:
        members = _members(self.communities, row)
        order = np.lexsort((members, -self.graph.degrees[members]))
        return tuple(self.graph.names[one] for one in members[order].tolist())

    def _parts(self, reports: Sequence[Report]) -> tuple[Part, ...]:
        tokens = self.counter.count([report.shown for report in reports])
        return tuple(
            Part(report.shown, size, report.chunk_ids)
            for report, size in zip(reports, tokens, strict=True)
        )

    def _write(self, reporter: Reporter, materials: Mapping[int, Material]) -> None:
        replies = reporter.write(list(materials.values()))
        rows = []
        for (row, material), reply in zip(materials.items(), replies, strict=True):
            written = reply.value
            if written is None:
                written = ExtractiveReporter().write([material])[0].value
            usage = reply.usage
            if (earlier := self.rows.get(self.ids[row])) is not None:
                usage = usage_from_json(earlier["usage"]) + usage
            parent = int(self.communities.parents[row])
            rows.append(
                {
                    "id": self.ids[row],
                    "level": int(self.communities.levels[row]),
                    "parent": "" if parent < 0 else self.ids[parent],
                    "entities": _members(self.communities, row).tolist(),
                    **asdict(written),
                    "error": reply.error,
                    "is_failed": reply.is_failed,
                    "usage": usage_to_json(usage),
                }
            )
        self.log.append(rows)
        self.rows.update((row["id"], row) for row in rows)

    def _refuse(self, done: set[str], max_failed: float) -> None:
        # What failed in an earlier call is not among `done` until it was tried again.
        errors = [self.rows[key]["error"] for key in self.ids if key in done]
        errors = [error for error in errors if error]
        if len(errors) > max_failed * len(self.ids):
            raise ReportError(
                f"{len(errors)} of {len(self.ids)} reports failed, more than "
                f"max_failed={max_failed}, one of them with: {errors[-1]}. What was written is in "
                f"{self.log.path}; run again to ask once more where the call failed, or raise "
                "max_failed to take the extractive report instead"
            )


def _members(communities: Communities, row: int) -> Int64[np.ndarray, "members"]:
    start, end = communities.members.indptr[row : row + 2]
    return communities.members.indices[start:end].astype(np.int64)


def _id(graph: EntityGraph, communities: Communities, row: int) -> str:
    forms = "\0".join(graph.entities[one] for one in _members(communities, row).tolist())
    return hashlib.sha256(forms.encode("utf-8")).hexdigest()[:16]


def _from_row(row: Mapping[str, Any]) -> Report:
    given = {name: row[name] for name in Report.__dataclass_fields__}
    return Report(**{key: tuple(v) if isinstance(v, list) else v for key, v in given.items()})
