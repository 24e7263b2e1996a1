"""The broker as a program.

python -m examples.final_project.broker [--dir DIR]

Its settings are `server.properties` beside this file, with addresses and the log directory from the
project's settings; all of them are in DIR/etc/server.properties. Then this process becomes
`strom broker start`.
"""

import os
import sys

from examples.final_project.broker.properties import write
from examples.final_project.part import begin, fail, parser_of


def main() -> None:
    """Become the broker."""
    options = parser_of("broker", "A broker that keeps the topics in DIR/data/broker.").parse_args()
    part = begin("broker", options.dir)
    try:
        file = write(part.place, part.settings)
    except OSError as error:
        fail(str(error))
    command = [sys.executable, "-m", "strom", "broker", "start", "--config", str(file)]
    part.become(command, os.environ)


if __name__ == "__main__":
    main()
