import json
import random

import pytest

from triax.extraction.verbalize import propositions
from triax.indexing.communities import Clustering
from triax.indexing.entity_graph import build_entity_graph
from triax.indexing.hashing import HashingEncoder
from triax.indexing.reporters import ExtractiveReporter, PromptedReporter
from triax.indexing.reports import ReportError, open_reports
from triax.indexing.updates import build_index
from triax.llm.scripted import ScriptedCompleter
from triax.models.token_counter import WordCounter
from triax.pipelines.assembly import Indexed
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet

# Two triangles that share an edge's worth of talk, a pair by itself, and a name without a relation.
SAID = [
    ("c1", "Ada", "met", "Babbage"),
    ("c2", "Babbage", "wrote to", "Cora"),
    ("c2", "Cora", "taught", "Ada"),
    ("c3", "Dorn", "joins", "Elm"),
    ("c3", "Elm", "joins", "Fenn"),
    ("c4", "Fenn", "joins", "Dorn"),
    ("c4", "Ada", "visited", "Dorn"),
    ("c5", "Kyiv", "lies on", "Dnipro"),
    ("c6", "Quell", "is", "Quell"),
]
CLUSTERING = Clustering(max_cluster_size=3)


def make_index(folder, said=SAID, shuffled=None):
    said = list(said)
    if shuffled is not None:
        random.Random(shuffled).shuffle(said)
    found = [Extraction(chunk, (Triplet(*one),)) for chunk, *one in said]
    chunks = [Chunk(name, name, f"text {name}") for name in dict.fromkeys(c for c, *_ in said)]
    return build_index(chunks, propositions(found), HashingEncoder(16), folder, extractor="t")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return make_index(tmp_path_factory.mktemp("reports") / "index")


def opened(index, reporter=None, **options):
    reporter = reporter or ExtractiveReporter(max_tokens=8)
    return open_reports(index, reporter, WordCounter(1.0), **{"clustering": CLUSTERING} | options)


def report_json(title, **more):
    return json.dumps({"title": title, "summary": "S", "rating": 5, "findings": ["f"]} | more)


def test_extractive_reports_by_hand(index):
    """Ada and Dorn have degree 3, the rest of the triangles 2, so facts of both come first."""
    found = opened(index)
    assert isinstance(found, Indexed) and found.index_cost.calls == 0 and found.num_failed == 0
    names = build_entity_graph(index.tables).names
    shown = {
        tuple(names[one] for one in report.entities): report
        for report in found.reports
        if report.level == 0
    }
    assert list(shown) == [
        ("Ada", "Babbage", "Cora"),
        ("Dnipro", "Kyiv"),
        ("Dorn", "Elm", "Fenn"),
        ("Quell",),
    ]
    ada = shown["Ada", "Babbage", "Cora"]
    # Degrees: Ada 3, Babbage 2, Cora 2. Ada's facts stand before Babbage's; 3 + 3 words of 8.
    assert ada.title == "Ada, Babbage, Cora"
    assert ada.findings == ("Ada met Babbage", "Cora taught Ada")
    assert ada.chunk_ids == ("c1", "c2") and ada.rating == 2.0  # log2(1 + 3 facts)
    assert ada.parent == "" and ada.error == ""
    assert ada.shown == "Ada, Babbage, Cora\nAda met Babbage\nCora taught Ada"
    assert shown["Dnipro", "Kyiv"].findings == ("Kyiv lies on Dnipro",)
    assert shown["Quell",].findings == ("Quell is Quell",)  # R14: not dropped


def test_r14_every_entity_is_in_a_report_of_the_widest_level(index):
    widest = [one for report in opened(index).at(0) for one in report.entities]
    assert sorted(widest) == list(range(len(build_entity_graph(index.tables).entities)))
    clustering = Clustering(max_cluster_size=3, only_largest=True)
    largest = opened(index, clustering=clustering)
    assert [len(report.entities) for report in largest.at(0)] == [3, 3]


def test_r13_r18_the_order_of_documents_does_not_matter(index, tmp_path):
    for shuffled in range(2):
        other = make_index(tmp_path / f"index{shuffled}", shuffled=shuffled)
        assert opened(other).reports == opened(index).reports


def test_r13_an_index_without_a_triplet_has_no_report(tmp_path):
    empty = build_index(
        [Chunk("a", "a", "text")], (), HashingEncoder(16), tmp_path / "index", extractor="t"
    )
    assert opened(empty).reports == ()


def chain(length):
    return [(f"c{n}", f"n{n:02}", "joins", f"n{n + 1:02}") for n in range(length)]


def test_reports_are_written_from_the_smallest_up_and_parts_are_handed_on(tmp_path):
    index = make_index(tmp_path / "index", chain(24))
    completer = ScriptedCompleter(lambda request: report_json(f"T{len(completer.requests)}"))
    # Three words a fact; what is larger than three facts shows its parts in their place.
    reporter = PromptedReporter(completer, max_input_tokens=9)
    found = opened(index, reporter, clustering=Clustering(max_cluster_size=4))
    levels = {report.title: report.level for report in found.reports}
    asked = [levels[f"T{number}"] for number in range(1, len(levels) + 1)]
    assert asked == sorted(asked, reverse=True) and max(asked) >= 1
    by_id = {report.id: report for report in found.reports}
    replaced = 0
    for report, request in ((r, completer.requests[int(r.title[1:]) - 1]) for r in found.reports):
        shown = request.messages[-1].content
        parts = [one for one in found.reports if one.parent == report.id]
        handed = [one for one in parts if f"Report about a part:\n{one.shown}" in shown]
        replaced += len(handed)
        assert not handed or {c for one in handed for c in one.chunk_ids} <= set(report.chunk_ids)
        assert report.level == 0 or set(report.entities) < set(by_id[report.parent].entities)
    assert replaced > 0
    assert found.index_cost.calls == len(found.reports) == len(completer.requests)
    # Once written, it is read.
    assert opened(index, reporter, clustering=Clustering(max_cluster_size=4)) == found
    assert len(completer.requests) == len(found.reports)


def test_r03_a_failed_report_is_counted_and_replaced(index):
    # Four reports in one batch; the second is asked for once more.
    answers = [report_json("A"), "unreadable", *map(report_json, "CD"), "still unreadable"]
    found = opened(index, PromptedReporter(ScriptedCompleter(answers, "half")), max_failed=0.3)
    assert found.num_failed == 1 and found.index_cost.calls == 5
    (failed,) = [report for report in found.reports if report.error]
    assert failed.error.startswith("unreadable:")
    wanted = {report.id: report for report in opened(index).reports}[failed.id]
    assert (failed.title, failed.findings) == (wanted.title, wanted.findings)


def test_r04_r29_a_model_that_is_down_ends_it_and_the_next_call_goes_on(index):
    asked = []

    def answer(request):
        asked.append(request)
        return "__RAISE__: down" if is_down[0] and len(asked) > 1 else report_json("T")

    is_down = [True]
    reporter = PromptedReporter(ScriptedCompleter(answer, "weak"))
    with pytest.raises(ReportError, match="1 of 4 reports failed.*down.*run again"):
        opened(index, reporter, batch_size=1)
    assert len(asked) == 2
    is_down[0] = False
    found = opened(index, reporter, batch_size=1)
    # The first stands, the failed one and the two others are asked for; the lost call is paid.
    assert len(asked) == 5 and found.num_failed == 0
    assert found.index_cost.calls == 5
    assert {report.title for report in found.reports} == {"T"}


def test_r02_too_many_unreadable_reports_are_refused_by_a_later_call_too(index):
    """All is written by the second call, which asks for nothing and must not pass for that."""
    reporter = PromptedReporter(ScriptedCompleter(lambda request: "unreadable", "mute"))
    for _ in range(2):
        with pytest.raises(ReportError, match="of 4 reports failed"):
            opened(index, reporter)
    assert opened(index, reporter, max_failed=1.0).num_failed == 4


def test_r28_reporter_counter_and_clustering_decide_the_folder(index):
    first = opened(index)
    one = open_reports(index, ExtractiveReporter(max_tokens=8), WordCounter(2.0), CLUSTERING)
    assert {len(report.findings) for report in one.reports} == {1}
    assert one != first
    assert opened(index, clustering=Clustering(only_largest=True)) != first
    assert opened(index, ExtractiveReporter(max_tokens=3)) != first
