"""The first query of a Spark session, from topic to topic: until what was there has gone through.

python -m bench.first_batch --connector strom --bootstrap 127.0.0.1:9092
"""

import argparse
import time

from bench.load import tell
from bench.spark import AWAIT_SECONDS, OWN, PEER, connectors
from bench.stage import Stage

RECORDS = 1000


def first_batch(args):
    stage = Stage(args.bootstrap, is_plain=args.connector == PEER)
    side = next(each for each in connectors(stage) if each.name == args.connector)
    try:
        source, target = stage.new_topic(), stage.new_topic()
        stage.send(source, [b"%d" % at for at in range(RECORDS)])
        begin = time.monotonic()
        query = side.start_mapping(source, target)
        while stage.count(target) < RECORDS:
            if not query.isActive or time.monotonic() > begin + AWAIT_SECONDS:
                raise SystemExit(f"{side.name} wrote nothing: {query.exception()}")
            time.sleep(0.01)
        seconds = time.monotonic() - begin
        query.stop()
        for topic in (source, target):
            stage.delete_topic(topic)
    finally:
        stage.close()
    return {"seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connector", choices=(OWN, PEER), required=True)
    parser.add_argument("--bootstrap", required=True)
    args = parser.parse_args()
    args.verb = "first-batch"
    args.work = first_batch
    tell(args)


main()
