"""What the gate needs to know of HTTP/1.1: heads, framing, and what a request asks for."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import re
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any

# A body is read whole before a request is forwarded; image tars are the largest.
MAXIMUM_BODY = 512 * 1024 * 1024

# The longest head or chunk-size line; also what a stream buffers before it pushes back.
READ_LIMIT = 1024 * 1024

# A chunk of a response is passed on as it is; this bounds a single read of an unframed one.
READ_SIZE = 64 * 1024

_STATUS_WORDS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ProtocolError(RuntimeError):
    """A peer said something that is not HTTP/1.1 as the gate knows it."""


@dataclasses.dataclass
class Head:
    """The first line and the headers of a message, and its bytes as received."""

    line: str
    headers: list[tuple[str, str]]
    raw: bytes

    def header(self, name: str) -> str | None:
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)

    @property
    def chunked(self) -> bool:
        return "chunked" in (self.header("Transfer-Encoding") or "").lower()

    @property
    def closes(self) -> bool:
        return "close" in (self.header("Connection") or "").lower()


@dataclasses.dataclass
class Request(Head):
    """A request as the gate saw it."""

    method: str = ""
    target: str = ""
    body: bytes = b""
    body_raw: bytes = b""

    @functools.cached_property
    def path(self) -> str:
        """The path, decoded, without the query."""
        return urllib.parse.unquote(urllib.parse.urlsplit(self.target).path)

    @functools.cached_property
    def query(self) -> dict[str, str]:
        """The query; of a repeated key the last value."""
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.target).query, True))

    @functools.cached_property
    def verb(self) -> str:
        """As the API server names it: get list watch create update patch delete deletecollection.

        For paths of other servers the method in lower case.
        """
        parts = kubernetes_parts(self.path)
        if parts is None:
            return self.method.lower()
        named = parts.name is not None
        if self.method == "GET":
            if _true(self.query.get("watch")):
                return "watch"
            return "get" if named else "list"
        if self.method == "DELETE" and not named:
            return "deletecollection"
        return {"POST": "create", "PUT": "update"}.get(self.method, self.method.lower())

    @functools.cached_property
    def template(self) -> str:
        """The path with {namespace}, {name} and {id} in place of what varies."""
        return template(self.path)

    @functools.cached_property
    def resource(self) -> str:
        """Of a Kubernetes path "pods", "pods/status", "leases", ...; else the template."""
        parts = kubernetes_parts(self.path)
        if parts is None:
            return self.template
        return "/".join([parts.resource, *parts.subresource])

    @functools.cached_property
    def is_stream(self) -> bool:
        """Whether the answer is a stream without a foreseeable end."""
        if _true(self.query.get("watch")) or _true(self.query.get("follow")):
            return True
        return bool(re.search(r"/(events|attach|wait|images/create|exec/[^/]+/start)$", self.path))

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


@dataclasses.dataclass
class Response(Head):
    """An answer; `body` is there only if an action asked for the whole of it."""

    status: int = 0
    body: bytes | None = None

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body or b"null")


@dataclasses.dataclass(frozen=True)
class KubernetesParts:
    group: str
    resource: str
    namespaced: bool
    name: str | None
    subresource: tuple[str, ...]


def kubernetes_parts(path: str) -> KubernetesParts | None:
    """The parts of a path of a resource of the API server; None for other paths."""
    words = [word for word in path.split("/") if word]
    if words[:1] == ["api"] and len(words) >= 3:
        group, rest = words[1], words[2:]
    elif words[:1] == ["apis"] and len(words) >= 4:
        group, rest = "/".join(words[1:3]), words[3:]
    else:
        return None
    namespaced = rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in _NAMESPACE_PARTS
    if namespaced:
        rest = rest[2:]
    name = rest[1] if len(rest) > 1 else None
    return KubernetesParts(group, rest[0], namespaced, name, tuple(rest[2:]))


# Sub-resources of a namespace itself, which look like resources in it.
_NAMESPACE_PARTS = ("status", "finalize")

_VARIABLE_WORD = re.compile(r"[0-9a-f]{12,64}|[0-9]+|spw-[a-z2-7-]+[0-9-]*|[0-9a-f-]{36}")
_DOCKER_COLLECTION = re.compile(r"^(containers|exec|volumes|networks)$")
_DOCKER_ACTIONS = ("create", "json", "prune")


@functools.lru_cache(maxsize=65536)
def template(path: str) -> str:
    parts = kubernetes_parts(path)
    if parts is not None:
        prefix = "/api/" if "/" not in parts.group else "/apis/"
        words = [prefix + parts.group]
        words += ["namespaces", "{namespace}"] if parts.namespaced else []
        words += [parts.resource]
        words += ["{name}"] if parts.name is not None else []
        return "/".join([*words, *parts.subresource])
    words = path.split("/")
    for i, word in enumerate(words):
        after_collection = i > 0 and _DOCKER_COLLECTION.match(words[i - 1])
        if after_collection and word not in _DOCKER_ACTIONS or _VARIABLE_WORD.fullmatch(word):
            words[i] = "{id}"
    if "images" in words and words[-1] in ("json", "push", "tag"):
        # Names of images hold slashes.
        return "/".join([*words[: words.index("images") + 1], "{name}", words[-1]])
    return "/".join(words)


def _true(value: str | None) -> bool:
    return value in ("1", "true", "True")


def _parse(raw: bytes) -> tuple[str, list[tuple[str, str]]]:
    line, *rest = raw.decode("latin-1").split("\r\n")
    headers = []
    for text in rest:
        if text:
            name, separator, value = text.partition(":")
            if not separator:
                raise ProtocolError(f"header without a colon: {text!r}")
            headers.append((name.strip(), value.strip()))
    return line, headers


async def read_head(reader: asyncio.StreamReader) -> bytes | None:
    """The bytes of a head; None if the peer closed between two messages."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ProtocolError(f"closed in the middle of a head: {error.partial!r}") from None
        return None


def parse_request(raw: bytes) -> Request:
    line, headers = _parse(raw)
    words = line.split(" ")
    if len(words) != 3:
        raise ProtocolError(f"not a request line: {line!r}")
    return Request(line, headers, raw, method=words[0], target=words[1])


async def read_request_body(reader: asyncio.StreamReader, request: Request) -> None:
    """Reads the body: as received into body_raw, without chunk framing into body."""
    if request.chunked:
        raw, payload = [], []
        async for frame, data in chunks(reader):
            raw.append(frame)
            payload.append(data)
        request.body_raw, request.body = b"".join(raw), b"".join(payload)
        return
    length = int(request.header("Content-Length") or 0)
    if length > MAXIMUM_BODY:
        raise ProtocolError(f"a body of {length} bytes is more than the gate takes")
    if length:
        request.body = request.body_raw = await reader.readexactly(length)


async def read_response_head(reader: asyncio.StreamReader) -> Response | None:
    raw = await read_head(reader)
    if raw is None:
        return None
    line, headers = _parse(raw)
    words = line.split(" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise ProtocolError(f"not a status line: {line!r}")
    return Response(line, headers, raw, status=int(words[1]))


def body_length(request: Request, response: Response) -> int | None:
    """Bytes of an unchunked body; None if it ends with the connection."""
    if request.method == "HEAD" or response.status in (204, 304) or response.status < 200:
        return 0
    length = response.header("Content-Length")
    return int(length) if length is not None else None


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    """The chunks of a body as (bytes as received, payload), the last one with its trailers."""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        if size == 0:
            raw = line
            while True:
                trailer = await reader.readuntil(b"\r\n")
                raw += trailer
                if trailer == b"\r\n":
                    break
            yield raw, b""
            return
        data = await reader.readexactly(size + 2)
        yield line + data, data[:-2]


def chunk(payload: bytes) -> bytes:
    """A payload in chunk framing."""
    return b"%x\r\n%s\r\n" % (len(payload), payload)


def answer(status: int, body: Any, headers: dict[str, str]) -> bytes:
    """A whole answer. Without a body it carries a Status object, as the API server's do (its
    `message` is where other servers put theirs, too).
    """
    reason = _STATUS_WORDS.get(status, "Unknown")
    if body is None:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"the gate answers {status} in place of the server",
            "reason": reason,
            "code": status,
        }
    if isinstance(body, str):
        data = body.encode()
    else:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
    merged = {"Content-Type": "application/json", **headers, "Content-Length": str(len(data))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in merged.items())
    return f"HTTP/1.1 {status} {reason}\r\n{lines}\r\n".encode("latin-1") + data
