"""Kafka's own perf tools, called in a JVM that stays up.

A tool that is started for one load compiles its code for all of it, and takes up to half of a
small machine for that. Here the same `main` is called again and again in one JVM, for both sides
alike, so that only the first loads, which are not counted, are of that kind.
"""

import functools
import queue
import re
import subprocess
import sys
from contextlib import suppress

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError

from tests import nodes

PRODUCER, CONSUMER = "ProducerPerformance", "ConsumerPerformance"
#: Of what a producer sends so much is not counted: until its buffer is as full as it will be.
UNCOUNTED = 0.2
#: Printed behind what a tool says.
END = "-- that was all --"
SAID_SECONDS_MAX = 10
REST_SECONDS = 0.5


def send(bootstrap, topic, records, size, settings):
    """Have the tool send so many records, as fast as it can; how many it sent a second."""
    said = call(
        PRODUCER,
        *("--bootstrap-server", bootstrap, "--topic", topic, "--throughput", -1),
        *("--num-records", records, "--record-size", size),
        *("--warmup-records", int(records * UNCOUNTED)),
        *("--command-property", *(f"{name}={value}" for name, value in settings.items())),
    )
    # The last line is of what came after the uncounted ones.
    found = re.findall(r"sent, ([\d.]+) records/sec", said)
    if not found:
        raise SystemExit(said)
    return float(found[-1])


def receive(bootstrap, topic, records, group):
    """Have the tool read so many records; how many it read a second, once it was in its group."""
    said = call(
        CONSUMER,
        *("--bootstrap-server", bootstrap, "--topic", topic),
        *("--num-records", records, "--group", group),
    )
    # It tells of what is missing only in words.
    heads, *lines = said.strip().splitlines() or [""]
    if not lines or "Exiting before" in said:
        raise SystemExit(said)
    return rate_read(heads, lines[-1])


def rate_read(heads, line):
    """Records a second, of the tool's table."""
    names = [name.strip() for name in heads.split(",")]
    return float(dict(zip(names, line.split(","), strict=True))["fetch.nMsg.sec"])


def call(tool, *arguments):
    """Call a tool; what it printed."""
    gateway, output, _ = jvm()
    words = gateway.new_array(gateway.jvm.java.lang.String, len(arguments))
    for at, word in enumerate(arguments):
        words[at] = str(word)
    try:
        getattr(gateway.jvm.org.apache.kafka.tools, tool).main(words)
        gateway.jvm.java.lang.System.out.println(END)
    except Py4JError as error:
        # It leaves with the JVM when it has something to complain of.
        raise SystemExit(f"{tool}: {error}\n{''.join(rest(output))}") from error
    lines = []
    while not (line := output.get(timeout=SAID_SECONDS_MAX)).startswith(END):
        lines.append(line)
    return "".join(lines)


def rest(output):
    """What it had said last."""
    with suppress(queue.Empty):
        while True:
            yield output.get(timeout=REST_SECONDS)


@functools.cache
def jvm():
    """The JVM, with the heap that Kafka's scripts give to a tool, and the lines that it prints.

    It ends with this process.
    """
    home, lib = (
        subprocess.run(
            [sys.executable, nodes.PEER, verb], check=True, capture_output=True, text=True
        ).stdout.splitlines()[-1]
        for verb in ("java", "fetch")
    )
    output = queue.Queue()
    port, process = launch_gateway(
        java_path=f"{home}/bin/java",
        classpath=f"{lib}/*",
        javaopts=["-Xmx512M", f"-Dlog4j2.configurationFile={lib}/log4j2.properties"],
        redirect_stdout=output,
        redirect_stderr=output,
        die_on_exit=True,
        return_proc=True,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port)), output, process
