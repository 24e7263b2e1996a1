"""The site as a program.

python -m examples.final_project.site [--dir DIR]
"""

import os
import socket

from examples.final_project.part import asked_to_end, begin, fail, parser_of
from examples.final_project.site.app import Site, some_faults
from examples.final_project.site.serving import serve
from strom.broker.host import wall_clock_ms

WAITING_MAX = 128


def main() -> None:
    """Serve until asked to end."""
    options = parser_of(
        "site", "A web site of rocket flights, made for being scraped."
    ).parse_args()
    part = begin("site", options.dir)
    settings = part.settings.site
    try:
        listener = socket.create_server((settings.listen, settings.port), backlog=WAITING_MAX)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        fail(f"the site cannot listen on {settings.listen}:{settings.port}: {why}")
    # uvicorn handles the signals, and sends them once more when it has ended.
    asked_to_end()
    site = Site(settings.seed, wall_clock_ms, some_faults(settings.seed, settings.faults))
    serve(site, listener)


if __name__ == "__main__":
    main()
