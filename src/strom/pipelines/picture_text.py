"""A pipeline's graph as lines of text: a tree below each source.

    attempts  topic authorisations
    └─ frequent  Cards with three attempts or more
       └─ named
          └─▶ alerts  topic alerts
    holders  table card-holders
    └─ named, above

A node with several inputs is drawn out below the first, and named below the others.
"""

from collections.abc import Iterator

from strom.pipelines.declaration import Node, Sink, Source, Step
from strom.pipelines.graph import Graph


def draw_text(graph: Graph) -> str:
    """Return the picture."""
    drawn: set[str] = set()
    lines = []
    for node in graph.nodes:
        if isinstance(node, Source):
            lines.append(label(node))
            lines += _below(graph, node.name, "", drawn)
    return "\n".join(lines)


def label(node: Node) -> str:
    """Return a node's name with what there is to say about it."""
    return f"{node.name}  {detail(node)}".rstrip()


def detail(node: Node) -> str:
    """Return what there is to say about a node besides its name."""
    match node:
        case Step():
            return "SQL" if isinstance(node.transform, str) else node.about
        case Source():
            read = next(
                (
                    node.options[key]
                    for key in ("subscribe", "subscribePattern", "assign")
                    if key in node.options
                ),
                "",
            )
            return f"{node.kind} {read}".rstrip()
        case Sink():
            target = node.options.get("path") or node.options.get("topic") or ""
            told = f"{node.options.get('format', node.kind)} {target}".rstrip()
            return f"what cannot be read, {told}" if node.takes_dead_letters else told


def _below(graph: Graph, name: str, indent: str, drawn: set[str]) -> Iterator[str]:
    readers = graph.readers(name)
    for place, node in enumerate(readers, 1):
        is_last = place == len(readers)
        corner = ("└─" if is_last else "├─") + ("▶ " if isinstance(node, Sink) else " ")
        if node.name in drawn:
            yield f"{indent}{corner}{node.name}, above"
            continue
        drawn.add(node.name)
        yield indent + corner + label(node)
        yield from _below(graph, node.name, indent + ("   " if is_last else "│  "), drawn)
