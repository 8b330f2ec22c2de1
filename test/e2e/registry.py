"""A real image registry that wants a password (distribution), for pulls with the credentials of pods."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import Any

from test.cluster import Engine, Keeper, binaries, wait_for

USER = "puller"
PASSWORD = "canary-open-sesame"
# bcrypt of PASSWORD, of the lowest cost.
_HTPASSWD = f"{USER}:$2b$04$abcdefghijklmnopqrstuu8md2xZwAC0ISRXmRmM0yBUPLWaUs9F6\n"


class Registry:
    """Listens on loopback, which engines take for one that may speak plain HTTP."""

    def __init__(self, keeper: Keeper) -> None:
        self.host = f"127.0.0.1:{keeper.reserve_port()}"
        folder = keeper.directory / "registry"
        folder.mkdir()
        (folder / "htpasswd").write_text(_HTPASSWD)
        config = {
            "version": 0.1,
            "log": {"level": "error", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
            "http": {"addr": self.host, "secret": "test"},
            "auth": {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}},
        }
        (folder / "config.yml").write_text(json.dumps(config))
        self._child = keeper.spawn(
            "registry",
            [binaries.binary("registry", "registry"), "serve", folder / "config.yml"],
            log=keeper.directory / "registry.log",
        )
        wait_for(self._answers, "the registry answers")

    def _answers(self) -> bool:
        self._child.check_alive()
        try:
            urllib.request.urlopen(f"http://{self.host}/v2/", timeout=5)
        except urllib.error.HTTPError as error:
            return error.code == 401
        except OSError:
            return False
        return False

    def take(self, engine: Engine, image: str, name: str) -> str:
        """Pushes an image of the engine, takes it away there, and returns what it is called now."""
        wanted = f"{self.host}/{name}"
        engine.docker("tag", image, wanted)
        engine.docker(
            "login", "-u", USER, "--password-stdin", self.host, input=PASSWORD.encode()
        )
        engine.docker("push", wanted)
        engine.docker("logout", self.host)
        engine.docker("rmi", wanted)
        return wanted

    def secret(self, password: str = PASSWORD) -> dict[str, Any]:
        """The fields of a Secret with the login."""
        auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
        document = json.dumps({"auths": {self.host: {"auth": auth}}})
        return {
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": document},
        }
