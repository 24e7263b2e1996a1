"""Whether a checkpoint still fits its sink."""

from strom.pipelines import Pipeline
from strom.pipelines.graph import Graph
from strom.pipelines.shape import Shape, changes, operators, recut, refusal, shape_of

PLAN = """\
~Project [window#10-T5000ms.start AS start#20, count#15L]
+- ~Aggregate [window#16-T5000ms, card#3], [window#16-T5000ms AS window#10, sum(km#4) AS count#15L]
   +- ~Project [named_struct(start, converted(x#1, 300000000)) AS window#16, card#3]
      +- ~Join Inner, (card#3 = card#9)
         :- ~StreamingRelationV2 [key#1]
         +- Aggregate [card#9], [card#9, max(km#4) AS km#5]
            +- Filter (km#4 > 10.0)
"""
WINDOWED = ["Aggregate", "named_struct(start,"]
OTHER_NUMBERS = PLAN.replace("#1", "#7").replace("#3", "#44")


def test_only_lines_that_state_depends_on_count():
    assert [line.split(" ")[0] for line in operators(PLAN, joins=False)] == WINDOWED
    assert [line.split(" ")[0] for line in operators(PLAN, joins=True)] == [*WINDOWED, "Join"]


def test_the_numbers_that_spark_gives_do_not_count():
    assert operators(PLAN, joins=True) == operators(OTHER_NUMBERS, joins=True)


def test_a_stateless_step_may_change():
    changed = PLAN.replace("km#4 > 10.0", "km#4 > 20.0").replace("window#16, card#3]", "window#16]")
    assert operators(PLAN, joins=True) == operators(changed, joins=True)


def test_another_aggregate_or_window_does_not_fit():
    old = Shape({"rides": "subscribe=rides"}, "topic out", operators(PLAN, joins=False))
    for changed in (PLAN.replace("sum(", "max("), PLAN.replace("300000000", "600000000")):
        (found,) = changes(old, old._replace(operators=operators(changed, joins=False)))
        assert found.startswith("what it keeps in its state has changed: ")


def test_other_types_in_the_state_do_not_fit_and_unknown_ones_are_not_compared():
    old = Shape({}, "topic out", ["Aggregate [rider]"], ("struct<rider:string,km:bigint>",))
    new = old._replace(types=("struct<rider:string,km:double>",))
    assert changes(old, new) == [
        "the types in its state have changed: struct<rider:string,km:bigint> is "
        "struct<rider:string,km:double> now"
    ]
    before = {name: value for name, value in old.write().items() if name != "types"}
    assert changes(Shape.read(before), new) == []


def test_another_mode_does_not_fit_where_there_is_state():
    """What was to be final later would never be written: Spark takes it up without a word."""
    old = Shape({}, "topic out", ["Aggregate [rider]"], mode="append")
    new = old._replace(mode="update")
    assert changes(old, new) == ["its mode was append and is update now"]
    assert changes(old._replace(operators=[]), new._replace(operators=[])) == []
    before = {name: value for name, value in old.write().items() if name != "mode"}
    assert changes(Shape.read(before), new) == []
    assert Shape.read(old.write()) == old


def test_an_operator_that_came_or_went_is_told():
    old = Shape({}, "topic out", [])
    new = old._replace(operators=["Deduplicate [id]"])
    assert changes(old, new) == ["what it keeps in its state has changed: Deduplicate [id] is new"]
    assert changes(new, old) == ["what it keeps in its state has changed: Deduplicate [id] is gone"]


def test_other_streams_or_another_target_do_not_fit():
    old = Shape({"rides": "subscribe=rides", "cars": "subscribe=cars"}, "topic out", [])
    new = Shape({"rides": "subscribe=rides2", "taxis": "subscribe=taxis"}, "files /data", [])
    assert changes(old, old) == []
    assert changes(old, new) == [
        "it no longer reads 'cars'",
        "it reads 'taxis' as well now",
        "'rides' was subscribe=rides and is subscribe=rides2 now",
        "it went to topic out and goes to files /data now",
    ]


def test_the_refusal_says_what_to_do():
    told = refusal("rides", "out", ["it no longer reads 'cars'"])
    assert "sink 'out'" in told
    assert "no longer reads 'cars'" in told
    assert "--reset out" in told


def test_the_shape_of_a_sink_knows_streams_and_not_tables():
    pipeline = Pipeline("rides")
    pipeline.topic("rides", "ride-events")
    pipeline.table("riders")
    pipeline.sql("named", "SELECT * FROM {rides} JOIN {riders} USING (rider)")
    pipeline.to_topic("out", of="named")
    graph = Graph.of(pipeline)

    shape = shape_of(graph.sinks[0], graph.sources_of("out"), PLAN)

    assert shape.streams == {"rides": "subscribe=ride-events"}
    assert shape.target == "topic out"
    assert Shape.read(shape.write()) == shape


def test_what_says_which_task_gets_a_row_is_known_of_topics():
    pipeline = Pipeline("rides")
    pipeline.topic("rides", minpartitions=4)
    pipeline.to_topic("out", of="rides", transactionalIdPrefix="mine")
    pipeline.to_files("archive", of="rides", path="/data")
    graph = Graph.of(pipeline)
    plan = "~Project [a#1]\n+- ~Repartition 7, true\n   +- ~StreamingRelationV2 [a#1]"
    shapes = [
        shape_of(sink, graph.sources_of(sink.name), plan, shuffles="2") for sink in graph.sinks
    ]
    assert shapes[0].tasks == (
        "spark.sql.shuffle.partitions=2",
        "transactionalIdPrefix=mine",
        "minPartitions=4 of 'rides'",
        "Repartition 7, true",
    )
    assert shapes[1].tasks == ()
    assert Shape.read(shapes[0].write()) == shapes[0]


def test_other_tasks_are_told_and_unknown_ones_are_not_compared():
    old = Shape({}, "topic out", [], tasks=("a=1", "b=1"))
    assert recut(old, old) is None
    assert recut(old._replace(tasks=()), old) is None
    assert recut(old, old._replace(tasks=("a=1", "b=2"))) == "b=1 has gone, b=2 has come"
    assert recut(old, old._replace(tasks=("a=1",))) == "b=1 has gone"
