"""What the database says at the end: a table, and a plot as text and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

FLIGHTS = """
SELECT f.flight, f.rocket, f.maker, f.nation, f.status,
       count(t.*), max(t.altitude_m) / 1000, max(t.engine_celsius),
       (SELECT count(*) FROM flights.anomaly a WHERE a.flight = f.flight)
FROM flights.flight f LEFT JOIN flights.telemetry t USING (flight)
GROUP BY f.flight ORDER BY f.launch
"""
HEADS = ["Flight", "Rocket", "Maker", "Crew", "Status", "Rows", "km", "°C", "Hot"]
HOTTEST = """
SELECT window_start, max(engine_celsius_max) FROM flights.telemetry_window
GROUP BY window_start ORDER BY window_start
"""
CURVES = """
SELECT flight, measured_at, altitude_m / 1000, engine_celsius FROM flights.telemetry
ORDER BY flight, measured_at
"""
METRICS = "SELECT metric, value FROM flights.broker_metric WHERE labels = '{}'"
#: Those of the broker's own figures that say something to whoever sees them first.
SHOWN = {
    "kafka_server_brokertopicmetrics_messagesin_total": "records appended",
    "kafka_server_brokertopicmetrics_bytesin_total": "bytes appended",
    "kafka_server_brokertopicmetrics_bytesout_total": "bytes fetched",
    "kafka_server_replicamanager_partitioncount": "partitions",
    "kafka_server_socketservermetrics_connection_count": "open connections",
}
CHART_HEIGHT = 8
EIGHTHS = " ▁▂▃▄▅▆▇█"


def ask(database: str, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, asked by one who may only read."""
    with psycopg.connect(database) as connection:
        return connection.execute(query.encode()).fetchall()


def flights_table(database: str) -> Table:
    """Return where the flights stand, with what was measured."""
    title = "Flights, from the database"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for head in HEADS:
        table.add_column(head, justify="right" if head in HEADS[5:] else "left", no_wrap=True)
    for *texts, measured, height, celsius, hot in ask(database, FLIGHTS):
        figures = ["" if each is None else f"{each:,.0f}" for each in (height, celsius)]
        cells = ["" if each is None else str(each) for each in texts]
        table.add_row(*cells, str(measured), *figures, str(hot or ""), style="red" if hot else "")
    return table


def metrics_table(database: str) -> Table:
    """Return what the broker told of itself last, by way of a topic like everything else."""
    table = Table(title="The broker's own metrics", title_justify="left")
    table.add_column("What")
    table.add_column("Newest", justify="right")
    told = dict(ask(database, METRICS))
    for name, what in SHOWN.items():
        if name in told:
            table.add_row(what, f"{told[name]:,.0f}")
    return table


def chart(values: Sequence[float], height: int = CHART_HEIGHT) -> list[str]:
    """Return the values as columns of blocks, the lowest as one eighth of a line."""
    if not values:
        return []
    low, high = min(values), max(values)
    step = (high - low) / (height * 8 - 1) or 1.0
    eighths = [round((value - low) / step) + 1 for value in values]
    return [
        "".join(EIGHTHS[max(0, min(8, each - 8 * line))] * 2 for each in eighths)
        for line in reversed(range(height))
    ]


def show_chart(console: Console, database: str) -> None:
    """Show the hottest engine of each window."""
    values = [float(celsius) for _start, celsius in ask(database, HOTTEST)]
    if not values:
        return
    console.print("\nThe hottest engine in each 10 s, °C")
    lines = chart(values)
    for number, line in enumerate(lines):
        label = {0: f"{max(values):,.0f}", len(lines) - 1: f"{min(values):,.0f}"}.get(number, "")
        console.print(f"{label:>7} ▏{line}", highlight=False)


def draw(database: str, file: Path) -> None:
    """Write the picture: how high the rockets are, and how hot."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (height, heat) = pyplot.subplots(2, 1, sharex=True, figsize=(10, 7))
    curves: dict[str, list[tuple[Any, float, float]]] = {}
    for flight, *point in ask(database, CURVES):
        curves.setdefault(flight, []).append((point[0], point[1], point[2]))
    for flight, points in curves.items():
        times, heights, degrees = zip(*points, strict=True)
        height.plot(times, heights, label=flight, linewidth=1)
        heat.plot(times, degrees, linewidth=1)
    height.set_ylabel("altitude, km")
    heat.set_ylabel("engine, °C")
    height.legend(fontsize=7, ncols=2, loc="upper left", bbox_to_anchor=(1, 1))
    figure.autofmt_xdate()
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
