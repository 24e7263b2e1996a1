"""The site on a port: in a thread, for tests, or for as long as the process is let."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from examples.final_project.site.app import Site

START_SECONDS_MAX = 30


class _Server(uvicorn.Server):
    """uvicorn, telling when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serves = threading.Event()

    async def startup(self, sockets: list | None = None) -> None:  # type: ignore[type-arg]
        await super().startup(sockets)
        self.serves.set()


def configured(site: Site, port: int) -> uvicorn.Config:
    """Return uvicorn's settings for the site: loopback only, and few words."""
    return uvicorn.Config(site.app, host="127.0.0.1", port=port, log_level="warning")


@contextmanager
def served(site: Site, port: int = 0) -> Iterator[str]:
    """Serve the site in a thread; yield its address."""
    server = _Server(configured(site, port))
    thread = threading.Thread(target=server.run, name="site", daemon=True)
    thread.start()
    try:
        if not server.serves.wait(START_SECONDS_MAX):
            raise TimeoutError("the site did not start")
        bound = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{bound}"
    finally:
        server.should_exit = True
        thread.join()


def serve(site: Site, listener: socket.socket) -> None:
    """Serve the site until the process is asked to end."""
    uvicorn.Server(configured(site, port=0)).run(sockets=[listener])
