"""A pipeline's graph as an SVG: columns from left to right, an arrow for each input.

A node's column is the longest way to it from a source, so every arrow points right; a source stands
just before its first reader. Inside a column nodes stand in the order of the middle of their
inputs, which keeps most arrows from crossing, and sources below them. What a node does stands on
two lines in its box; all of it is shown to who points at it.
"""

import math
from collections import defaultdict
from html import escape
from textwrap import wrap
from typing import NamedTuple

from strom.pipelines.declaration import Sink, Source
from strom.pipelines.graph import Graph
from strom.pipelines.picture_text import detail
from strom.pipelines.shape import shorten

WIDTH, HEIGHT = 196, 64
COLUMN_GAP, ROW_GAP, MARGIN = 70, 22, 20
#: By the widest of the usual fonts.
NAME_LENGTH_MAX, DETAIL_LENGTH_MAX, DETAIL_LINES_MAX = 18, 27, 2
DETAIL_LINE_HEIGHT = 14
COLOURS = {"source": "#dbeafe", "step": "#f1f5f9", "sink": "#dcfce7"}
STYLE = (
    "text{font-family:system-ui,sans-serif;fill:#0f172a}.name{font-size:14px;font-weight:600}"
    ".detail{font-size:11px;fill:#475569}rect{stroke:#64748b}path{fill:none;stroke:#64748b;"
    "stroke-width:1.5}"
)


class Place(NamedTuple):
    """Where a node's box stands."""

    x: float
    y: float


def draw_svg(graph: Graph, title: str) -> str:
    """Return the picture as the text of an SVG file."""
    places = _places(graph)
    width = max(place.x for place in places.values()) + WIDTH + MARGIN
    height = max(place.y for place in places.values()) + HEIGHT + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img">',
            f"<title>{escape(title)}</title><style>{STYLE}</style>",
            '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><polygon points="0,0 8,4 0,8" fill="#64748b"/>'
            "</marker></defs>",
            *_arrows(graph, places),
            *_boxes(graph, places),
            "</svg>\n",
        ]
    )


def _columns(graph: Graph) -> dict[str, int]:
    columns: dict[str, int] = {}
    for node in graph.nodes:
        columns[node.name] = 1 + max((columns[name] for name in node.inputs), default=-1)
    for node in graph.nodes:
        if isinstance(node, Source):
            readers = [columns[reader.name] for reader in graph.readers(node.name)]
            columns[node.name] = min(readers, default=1) - 1
    return columns


def _places(graph: Graph) -> dict[str, Place]:
    columns = defaultdict(list)
    for name, column in _columns(graph).items():
        columns[column].append(name)
    rows: dict[str, float] = {}
    for column in sorted(columns):
        # Sorting is stable: nodes without inputs stay as they were declared.
        names = sorted(columns[column], key=lambda name: _middle(graph, name, rows))
        rows.update({name: row for row, name in enumerate(names)})
    return {
        name: Place(
            MARGIN + column * (WIDTH + COLUMN_GAP), MARGIN + rows[name] * (HEIGHT + ROW_GAP)
        )
        for column, names in columns.items()
        for name in names
    }


def _middle(graph: Graph, name: str, rows: dict[str, float]) -> float:
    inputs = graph[name].inputs
    return sum(rows[each] for each in inputs) / len(inputs) if inputs else math.inf


def _arrows(graph: Graph, places: dict[str, Place]) -> list[str]:
    arrows = []
    for node in graph.nodes:
        for name in node.inputs:
            begin, end = places[name], places[node.name]
            x, y = begin.x + WIDTH, begin.y + HEIGHT / 2
            to_y, half = end.y + HEIGHT / 2, COLUMN_GAP / 2
            arrows.append(
                f'<path d="M{x:g},{y:g} C{x + half:g},{y:g} {end.x - half:g},{to_y:g} '
                f'{end.x:g},{to_y:g}" marker-end="url(#end)"/>'
            )
    return arrows


def _boxes(graph: Graph, places: dict[str, Place]) -> list[str]:
    boxes = []
    for node in graph.nodes:
        x, y = places[node.name]
        kind = (
            "source" if isinstance(node, Source) else "sink" if isinstance(node, Sink) else "step"
        )
        told = escape(f"{node.name}: {detail(node)}")
        boxes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="8" '
            f'fill="{COLOURS[kind]}"><title>{told}</title></rect>'
            f'<text class="name" x="{x + 12:g}" y="{y + 21:g}">'
            f"{escape(shorten(node.name, NAME_LENGTH_MAX))}</text>" + _lines(detail(node), x, y)
        )
    return boxes


def _lines(text: str, x: float, y: float) -> str:
    """Return a text as the lines below a name."""
    lines = wrap(text, DETAIL_LENGTH_MAX, max_lines=DETAIL_LINES_MAX, placeholder="…")
    return "".join(
        f'<text class="detail" x="{x + 12:g}" y="{y + 38 + number * DETAIL_LINE_HEIGHT:g}">'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    )
