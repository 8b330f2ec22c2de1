"""Who asked the API server for what, counted from its audit log: nobody is taken at his word."""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
from collections.abc import Iterable, Sequence

import yaml


@dataclasses.dataclass(frozen=True)
class Request:
    """One request that was answered, or a watch that was opened."""

    user: str
    verb: str
    resource: str  # pods, pods/status, events, ...
    name: str
    status: int

    @property
    def what(self) -> str:
        return f"{self.verb} {self.resource}"


class AuditLog:
    """The audit log of one API server. Only the users that are named are written down: the log
    costs the same for each of them, and nothing for the controllers.
    """

    def __init__(self, directory: pathlib.Path, users: Sequence[str]) -> None:
        self.path = directory / "audit.log"
        self._policy = directory / "audit-policy.yaml"
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": list(users)}, {"level": "None"}],
        }
        self._policy.write_text(yaml.safe_dump(policy))

    def flags(self) -> list[str]:
        """What the API server has to be started with."""
        return [
            f"--audit-policy-file={self._policy}",
            f"--audit-log-path={self.path}",
            "--audit-log-maxsize=4000",
        ]

    def position(self) -> int:
        """Where the log ends now; hand it to since()."""
        return self.path.stat().st_size if self.path.exists() else 0

    def since(self, position: int, user: str) -> list[Request]:
        """Every request of a user that was logged after `position`, each once."""
        found: dict[str, Request] = {}
        with open(self.path, "rb") as log:
            log.seek(position)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                entry = json.loads(line)
                if entry["user"]["username"] != user:
                    continue
                found[entry["auditID"]] = _request(entry)
        return list(found.values())


def _request(entry: dict) -> Request:
    target = entry.get("objectRef") or {}
    resource = target.get("resource") or entry["requestURI"].split("?")[0]
    if target.get("subresource"):
        resource += "/" + target["subresource"]
    return Request(
        user=entry["user"]["username"],
        verb=entry["verb"],
        resource=resource,
        name=target.get("name", ""),
        status=(entry.get("responseStatus") or {}).get("code", 0),
    )


def by_kind(requests: Iterable[Request]) -> dict[str, int]:
    """{"patch pods/status": 2000, ...}, the most frequent first."""
    return dict(collections.Counter(r.what for r in requests).most_common())
