"""An HTML table as rows of text, or the reason why it is none.

HTML parsers forgive everything: half a page parses as a shorter page. So the end of the document is
looked for in the text, and every column that is wanted must be there by its name. The order of the
columns and what else is on the page may change.
"""

from collections.abc import Collection

from selectolax.lexbor import LexborHTMLParser, LexborNode

END = "</html>"
ROWS_MAX = 10_000


class UnreadableError(Exception):
    """A page is not what it was agreed to be; the text says in what way."""


def rows(html: str, table: str, columns: Collection[str]) -> list[dict[str, str]]:
    """Return the table's rows, each a text per wanted column."""
    if not html.rstrip().endswith(END):
        raise UnreadableError("truncated: the page does not end")
    found = LexborHTMLParser(html).css_first(f'table[id="{table}"]')
    if found is None:
        raise UnreadableError(f"layout: there is no table '{table}'")
    heads = [_text(each) for each in found.css("thead th")]
    if missing := sorted(set(columns) - set(heads)):
        raise UnreadableError(f"layout: table '{table}' has no column '{missing[0]}'")
    lines = found.css("tbody tr")
    if len(lines) > ROWS_MAX:
        raise UnreadableError(f"size: table '{table}' has more than {ROWS_MAX} rows")
    return [_row(heads, line, columns) for line in lines]


def _row(heads: list[str], line: LexborNode, columns: Collection[str]) -> dict[str, str]:
    cells = dict(zip(heads, (_text(each) for each in line.css("td")), strict=False))
    return {name: cells.get(name, "") for name in columns}


def _text(node: LexborNode) -> str:
    return node.text(strip=True)
