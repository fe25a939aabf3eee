import xml.etree.ElementTree as ET

import pytest

from triax.reporting.curves import curves_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_points_stand_where_their_values_say():
    drawn = ET.fromstring(curves_svg({"a": [(0.0, 0.0), (1.0, 0.5)]}, "ratio", "F1", "Sweep"))
    # The plot is 420 x 300 pixels from (64, 40); 0 to 1 and 0 to 0.5 are its whole sides.
    dots = [(float(one.get("cx")), float(one.get("cy"))) for one in drawn.iter(f"{SVG}circle")]
    assert dots == [(64.0, 340.0), (484.0, 40.0)]
    (line,) = drawn.iter(f"{SVG}polyline")
    assert line.get("points").split() == ["64.0,340.0", "484.0,40.0"]


def test_a_single_point_is_a_larger_dot_without_a_line():
    drawn = ET.fromstring(curves_svg({"a": [(1, 1), (2, 2)], "b": [(1.5, 2)]}, "x", "y", "t"))
    assert len(list(drawn.iter(f"{SVG}polyline"))) == 1
    assert [one.get("r") for one in drawn.iter(f"{SVG}circle")] == ["2.5", "2.5", "5"]


def test_text_is_escaped_and_equal_values_have_an_axis():
    drawn = ET.fromstring(curves_svg({"<b>": [(0.3, 7)]}, "x & y", "y", 'a "title"'))
    texts = [one.text for one in drawn.iter(f"{SVG}text")]
    assert "<b>" in texts and "x & y" in texts and 'a "title"' in texts


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="without a point"):
        curves_svg({"a": []}, "x", "y", "t")


def test_a_chosen_point_is_marked_on_its_line():
    drawn = ET.fromstring(
        curves_svg({"a": [(0, 0), (1, 1)], "b": [(0, 1)]}, "x", "y", "t", {"a": (0.5, 0.5)})
    )
    marked = [one for one in drawn.iter(f"{SVG}circle") if one.get("stroke") == "black"]
    (line,) = drawn.iter(f"{SVG}polyline")
    assert [(one.get("cx"), one.get("cy")) for one in marked] == [("274.0", "190.0")]
    assert marked[0].get("fill") == line.get("stroke")
    assert marked[0].find(f"{SVG}title").text == "a, chosen: 0.5, 0.5"


def test_a_point_of_no_line():
    with pytest.raises(ValueError, match="chosen of .'b'."):
        curves_svg({"a": [(0, 0)]}, "x", "y", "t", {"b": (0, 0)})
