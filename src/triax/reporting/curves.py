"""Figures of sweeps as SVG: one or more lines over two measured quantities."""

from collections.abc import Mapping, Sequence

from triax.records.text import clean

Points = Sequence[tuple[float | int, float | int]]
_WIDTH, _HEIGHT, _LEFT, _TOP = 420, 300, 64, 40  # pixels of the plot, and of the margins before it
_COLOURS = (
    *("#4477aa", "#cc3311", "#228833", "#aa3377", "#ccbb44", "#66ccee", "#555555"),
    *("#ee7733", "#332288", "#999933", "#882255", "#44aa99", "#000000", "#bbbbbb"),
)
_TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="680" height="400" viewBox="0 0 680 400" \
font-family="sans-serif" font-size="12" role="img">
<title>{{ title }}</title>
<rect width="680" height="400" fill="white"/>
<text x="{{ left + width / 2 }}" y="24" text-anchor="middle" font-size="14">{{ title }}</text>
{% for tick in x_ticks -%}
<line x1="{{ x(tick) }}" y1="{{ top }}" x2="{{ x(tick) }}" y2="{{ top + height }}" \
stroke="#eeeeee"/>
<text x="{{ x(tick) }}" y="{{ top + height + 16 }}" text-anchor="middle">{{ shown(tick) }}</text>
{% endfor -%}
{% for tick in y_ticks -%}
<line x1="{{ left }}" y1="{{ y(tick) }}" x2="{{ left + width }}" y2="{{ y(tick) }}" \
stroke="#eeeeee"/>
<text x="{{ left - 6 }}" y="{{ y(tick) + 4 }}" text-anchor="end">{{ shown(tick) }}</text>
{% endfor -%}
{% for line in lines -%}
{% if line.points | length > 1 -%}
<polyline fill="none" stroke="{{ line.colour }}" stroke-width="1.5" \
points="{% for point in line.points %}{{ x(point[0]) }},{{ y(point[1]) }} {% endfor %}"/>
{% endif -%}
{% for point in line.points -%}
<circle cx="{{ x(point[0]) }}" cy="{{ y(point[1]) }}" \
r="{{ 2.5 if line.points | length > 1 else 5 }}" \
fill="{{ line.colour }}"><title>{{ line.name }}: {{ shown(point[0]) }}, {{ shown(point[1]) }}\
</title></circle>
{% endfor -%}
{% for point in line.chosen -%}
<circle cx="{{ x(point[0]) }}" cy="{{ y(point[1]) }}" r="5" fill="{{ line.colour }}" \
stroke="black"><title>{{ line.name }}, chosen: {{ shown(point[0]) }}, {{ shown(point[1]) }}\
</title></circle>
{% endfor -%}
<rect x="{{ left + width + 16 }}" y="{{ top + 18 * loop.index0 }}" width="10" height="10" \
fill="{{ line.colour }}"/>
<text x="{{ left + width + 32 }}" y="{{ top + 9 + 18 * loop.index0 }}">{{ line.name }}</text>
{% endfor -%}
<rect x="{{ left }}" y="{{ top }}" width="{{ width }}" height="{{ height }}" fill="none" \
stroke="black"/>
<text x="{{ left + width / 2 }}" y="{{ top + height + 36 }}" text-anchor="middle">\
{{ x_name }}</text>
<text x="16" y="{{ top + height / 2 }}" text-anchor="middle" \
transform="rotate(-90 16 {{ top + height / 2 }})">{{ y_name }}</text>
</svg>
"""


def curves_svg(
    lines: Mapping[str, Points],
    x_name: str,
    y_name: str,
    title: str,
    chosen: Mapping[str, tuple[float | int, float | int]] | None = None,
) -> str:
    """Draws each named line in the order of its points; a line of one point is a larger dot.

    Text is escaped. Fourteen lines have colours of their own.

    Args:
        lines: points (x, y) by the name that the legend shows.
        x_name: the quantity on the x axis.
        y_name: the quantity on the y axis.
        title: stands above.
        chosen: for some of the lines a point that is marked, such as the setting in use.

    Raises:
        ValueError: there is no point, or a line of `chosen` is not there.
    """
    import jinja2

    chosen = chosen or {}
    if unknown := sorted(set(chosen) - set(lines)):
        raise ValueError(f"points are chosen of {unknown}; there are the lines {sorted(lines)}")
    points = [point for line in lines.values() for point in line]
    points += chosen.values() if points else []
    if not points:
        raise ValueError(f"{len(lines)} lines without a point; measure something first")
    x_low, x_high, x_ticks = _axis([x for x, _ in points])
    y_low, y_high, y_ticks = _axis([y for _, y in points])
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_TEMPLATE).render(
        lines=[
            {
                "name": " ".join(clean(name).split()),
                "points": list(line),
                "chosen": [chosen[name]] if name in chosen else [],
                "colour": _COLOURS[number % len(_COLOURS)],
            }
            for number, (name, line) in enumerate(lines.items())
        ],
        title=" ".join(clean(title).split()),
        x_name=x_name,
        y_name=y_name,
        x_ticks=x_ticks,
        y_ticks=y_ticks,
        left=_LEFT,
        top=_TOP,
        width=_WIDTH,
        height=_HEIGHT,
        x=lambda value: round(_LEFT + _WIDTH * (value - x_low) / (x_high - x_low), 2),
        y=lambda value: round(_TOP + _HEIGHT * (1 - (value - y_low) / (y_high - y_low)), 2),
        shown=lambda value: f"{value:.3g}",
    )


def _axis(values: Sequence[float | int]) -> tuple[float, float, list[float]]:
    """Limits and five or so ticks at steps of 1, 2 or 5 times a power of ten."""
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    step = next(
        size * 10.0**power
        for power in range(-12, 13)
        for size in (1, 2, 5)
        if size * 10.0**power * 5 >= span
    )
    first, last = int(low // step), int(-(-high // step))
    last = max(last, first + 1)
    ticks = [round(step * n, 12) for n in range(first, last + 1)]
    return ticks[0], ticks[-1], ticks
