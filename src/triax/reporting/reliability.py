"""Reliability diagrams as SVG: how often values of a given confidence are right."""

from collections.abc import Sequence

from triax.records.text import clean
from triax.scoring.calibration import Bin, expected_calibration_error

_SIDE, _LEFT, _TOP = 300, 56, 40  # pixels of the plot, and of the margins before it
_TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="400" height="410" viewBox="0 0 400 410" \
font-family="sans-serif" font-size="12" role="img">
<title>{{ title }}</title>
<rect width="400" height="410" fill="white"/>
<text x="{{ left + side / 2 }}" y="24" text-anchor="middle" font-size="14">{{ title }}</text>
{% for tick in ticks -%}
<text x="{{ x(tick) }}" y="{{ y(0) + 16 }}" text-anchor="middle">{{ tick }}</text>
<text x="{{ left - 6 }}" y="{{ y(tick) + 4 }}" text-anchor="end">{{ tick }}</text>
{% endfor -%}
{% for bin in bins if bin.count -%}
<rect class="bin" x="{{ x(bin.low) }}" y="{{ y(bin.accuracy) }}" \
width="{{ '%.2f' | format([side * (bin.high - bin.low), 1] | max) }}" \
height="{{ '%.2f' | format(side * bin.accuracy) }}" fill="#4477aa" \
fill-opacity="{{ '%.2f' | format(0.25 + 0.75 * bin.count / most) }}" stroke="#224466">\
<title>{{ bin.count }} values, confidence {{ '%.3f' | format(bin.confidence) }}, \
right {{ '%.3f' | format(bin.accuracy) }}</title></rect>
<circle cx="{{ x(bin.confidence) }}" cy="{{ y(bin.accuracy) }}" r="3" fill="#cc3311"/>
{% endfor -%}
<line x1="{{ x(0) }}" y1="{{ y(0) }}" x2="{{ x(1) }}" y2="{{ y(1) }}" stroke="#888888" \
stroke-dasharray="4 4"/>
<rect x="{{ left }}" y="{{ top }}" width="{{ side }}" height="{{ side }}" fill="none" \
stroke="black"/>
<text x="{{ left + side / 2 }}" y="{{ y(0) + 34 }}" text-anchor="middle">confidence</text>
<text x="16" y="{{ top + side / 2 }}" text-anchor="middle" \
transform="rotate(-90 16 {{ top + side / 2 }})">share that is right</text>
<text x="{{ left + side / 2 }}" y="{{ y(0) + 54 }}" text-anchor="middle">\
n = {{ total }}, ECE {{ '%.3f' | format(ece) }}</text>
</svg>
"""


def reliability_svg(bins: Sequence[Bin], title: str = "Reliability") -> str:
    """Draws bins as bars of their accuracy, darker where there are more values.

    A dot stands at the bin's mean confidence: on the dashed diagonal, confidence is probability
    (Guo et al., 2017, figure 1). Text is escaped.

    Raises:
        ValueError: no bin holds a value.
    """
    import jinja2

    if not any(one.count for one in bins):
        raise ValueError(f"{len(bins)} bins without any value; measure something with a confidence")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_TEMPLATE).render(
        bins=bins,
        title=" ".join(clean(title).split()),
        ticks=[0, 0.2, 0.4, 0.6, 0.8, 1],
        total=sum(one.count for one in bins),
        most=max(one.count for one in bins),
        ece=expected_calibration_error(bins),
        side=_SIDE,
        left=_LEFT,
        top=_TOP,
        x=lambda share: round(_LEFT + _SIDE * share, 2),
        y=lambda share: round(_TOP + _SIDE * (1 - share), 2),
    )
