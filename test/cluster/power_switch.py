"""Lets a test in another process cut the power of an engine: one connection to a unix socket is one cut."""

from __future__ import annotations

import pathlib
import socketserver
import threading

from .dockerd import Engine


class PowerSwitch:
    """Each connection kills the engine and its containers, starts it on its data, and is closed
    once it answers.
    """

    def __init__(self, engine: Engine) -> None:
        self.socket: pathlib.Path = engine.directory / "power.sock"

        class Cut(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                engine.kill()
                engine.start_again()

        self._server = socketserver.UnixStreamServer(str(self.socket), Cut)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> PowerSwitch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.socket.unlink(missing_ok=True)
