"""The graph of a pipeline as text and as SVG (STR-14)."""

from xml.etree import ElementTree

from strom.pipelines import Pipeline
from strom.pipelines.graph import Graph
from strom.pipelines.picture_svg import draw_svg
from strom.pipelines.picture_text import draw_text

SVG = "{http://www.w3.org/2000/svg}"


def cards():
    pipeline = Pipeline("cards")
    pipeline.topic("attempts", "authorisations")
    pipeline.table("holders", "card-holders")

    @pipeline.step
    def frequent(attempts):
        """Cards with three attempts or more.

        In five minutes.
        """

    pipeline.sql("named", "SELECT * FROM {frequent} JOIN {holders} USING (card)")
    pipeline.to_topic("alerts", of="named", key="card")
    pipeline.to_files("archive", of="named", path="/data/<alerts>")
    return Graph.of(pipeline)


def test_str_14_the_text_is_a_tree_below_each_source():
    assert draw_text(cards()).splitlines() == [
        "attempts  topic authorisations",
        "└─ frequent  Cards with three attempts or more.",
        "   └─ named  SQL",
        "      ├─▶ alerts  topic alerts",
        "      └─▶ archive  parquet /data/<alerts>",
        "holders  table card-holders",
        "└─ named, above",
    ]


def test_str_14_dead_letters_are_a_sink_of_their_source():
    pipeline = Pipeline("rides")
    pipeline.topic("rides", json="km double", dead_letters="rides-dead")
    pipeline.to_topic("copy", of="rides", key="key")
    assert draw_text(Graph.of(pipeline)).splitlines() == [
        "rides  topic rides",
        "├─▶ rides-dead-letters  what cannot be read, topic rides-dead",
        "└─▶ copy  topic copy",
    ]


def test_str_14_the_svg_has_a_box_for_each_node_and_an_arrow_to_the_right_for_each_input():
    root = ElementTree.fromstring(draw_svg(cards(), "cards"))
    boxes = root.findall(f"{SVG}rect")
    arrows = root.findall(f"{SVG}path")
    texts = [each.text for each in root.findall(f"{SVG}text")]

    assert len(boxes) == 6
    assert len({(box.get("x"), box.get("y")) for box in boxes}) == 6
    assert len(arrows) == 5
    head = f"url(#{root.find(f'.//{SVG}marker').get('id')})"
    for arrow in arrows:
        assert (arrow.get("marker-start"), arrow.get("marker-end")) == (None, head)
        begin, end = arrow.get("d")[1:].split(" ")[0], arrow.get("d").split(" ")[-1]
        assert float(begin.split(",")[0]) < float(end.split(",")[0])
    assert "frequent" in texts
    assert "parquet /data/<alerts>" in texts
    assert {"Cards with three attempts", "or more."} <= set(texts)
    assert "named: SQL" in [box.find(f"{SVG}title").text for box in boxes]
    assert root.find(f"{SVG}title").text == "cards"
