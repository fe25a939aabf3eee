from triax.records.readings import ReadRequest, shown_passage, shown_slot


def test_titles_stand_first():
    assert shown_passage("Vertigo", "A film.") == "Vertigo. A film."
    assert shown_passage("", "A film.") == "A film."


def test_slots_have_bars_between_fields():
    assert shown_slot("Vertigo", "director", "?") == "Vertigo | director | ?"


def test_requests_are_equal_by_content():
    assert ReadRequest("q", ("a",)) == ReadRequest("q", ("a",))
