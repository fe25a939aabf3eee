"""Tests of triax.reporting.reliability."""

import xml.etree.ElementTree as ElementTree

import pytest

from triax.reporting.reliability import reliability_svg
from triax.scoring.calibration import Bin

SVG = "{http://www.w3.org/2000/svg}"
BINS = (
    Bin(0.0, 0.5, 1, 0.4, 0.0),
    Bin(0.5, 0.75, 0, 0.0, 0.0),
    Bin(0.75, 1.0, 3, 0.8, 1.0),
)


def test_bars_stand_where_the_bins_are():
    root = ElementTree.fromstring(reliability_svg(BINS, "dev"))
    bars = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "bin"]
    # The plot is 300 wide and high and begins at (56, 40); the empty bin has no bar.
    assert [(bar.get("x"), bar.get("y"), bar.get("height")) for bar in bars] == [
        ("56.0", "340.0", "0.00"),
        ("281.0", "40.0", "300.00"),
    ]
    assert [bar.get("width") for bar in bars] == ["150.00", "75.00"]
    (low, high) = root.iter(f"{SVG}circle")
    assert (low.get("cx"), high.get("cx")) == ("176.0", "296.0")
    texts = [one.text for one in root.iter(f"{SVG}text")]
    # (1 * .4 + 3 * .2) / 4
    assert "n = 4, ECE 0.250" in texts and "dev" in texts


def test_r24_a_title_is_text():
    title = "</text><script>alert(1)</script>\x00 a & b"
    root = ElementTree.fromstring(reliability_svg(BINS, title))
    assert not list(root.iter(f"{SVG}script"))
    assert root.find(f"{SVG}title").text == "</text><script>alert(1)</script> a & b"


def test_nothing_measured_is_nothing_to_draw():
    with pytest.raises(ValueError, match="without any value"):
        reliability_svg((Bin(0.0, 1.0, 0, 0.0, 0.0),))
