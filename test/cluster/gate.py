"""A gate between the daemon and a server, where tests break the connection in placed ways.

    gate = Gate.tls(cluster)                      # or Gate.unix(engine.socket, path)
    kubeconfig = cluster.spillway_kubeconfig(server=gate.url)
    gate.on(matching(verb="patch", resource="pods/status"), after(lambda _: daemon.kill()))

Bytes pass untouched in both directions, a watch chunk by chunk, unless a rule says otherwise. The
gate speaks HTTP/1.1 only, verifies the server, and runs in a thread of its own; all its methods may
be called from tests directly. Actions that call a function do so in a worker thread: it may block,
and the one exchange waits for it while all others go on.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import os
import pathlib
import ssl
import threading
import time
import traceback
import urllib.parse
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from . import http1
from .http1 import Request, Response

Match = Callable[[Request], bool]


class ServesTls(Protocol):
    """What the gate needs of a cluster."""

    server: str

    @property
    def ca(self) -> pathlib.Path: ...

    def reserve_port(self) -> int: ...

    def issue_serving_cert(self, name: str) -> tuple[pathlib.Path, pathlib.Path]: ...


@dataclasses.dataclass
class Exchange:
    """What an action's function is called with; `response` is None before forwarding."""

    request: Request
    response: Response | None = None


@dataclasses.dataclass(frozen=True)
class Action:
    """What a rule does. Made by the functions below."""

    kind: str
    function: Callable[[Exchange], Any] | None = None
    seconds: float = 0.0
    data: bytes = b""
    status: int = 0


def before(function: Callable[[Exchange], Any]) -> Action:
    """Calls a function, then forwards the request."""
    return Action("before", function)


def after(function: Callable[[Exchange], Any]) -> Action:
    """Forwards, reads the whole answer (of a stream: its head), calls a function, passes it on."""
    return Action("after", function)


def answer(
    status: int,
    body: Any = None,
    *,
    retry_after: int | None = None,
    headers: dict[str, str] | None = None,
) -> Action:
    """Answers in the server's place; the request is not forwarded. Body: bytes, str, or JSON."""
    extra = dict(headers or {})
    if retry_after is not None:
        extra["Retry-After"] = str(retry_after)
    return Action("answer", data=http1.answer(status, body, extra), status=status)


def watch_gone() -> Action:
    """Answers a watch with the event that says that its resourceVersion is too old (410)."""
    return answer(200, GONE_EVENT)


GONE_EVENT = (
    '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    '"message":"too old resource version","reason":"Expired","code":410}}\n'
)


def drop_before() -> Action:
    """Closes the client's connection without forwarding the request."""
    return Action("drop_before")


def drop_after() -> Action:
    """Forwards, waits for the whole answer, then closes without passing it on: a lost answer."""
    return Action("drop_after")


def delay(seconds: float) -> Action:
    """Holds the request back before forwarding it."""
    return Action("delay", seconds=seconds)


def delay_answer(seconds: float) -> Action:
    """Forwards, and holds the answer back."""
    return Action("delay_answer", seconds=seconds)


def silent() -> Action:
    """Goes silent: a new request is swallowed; an open stream passes nothing more. The connection
    stays open until the client closes it.
    """
    return Action("silent")


def cut_mid_line() -> Action:
    """Of an open or coming stream: passes on all but half of the next line, then closes."""
    return Action("cut_mid_line")


def end_with(line: str) -> Action:
    """Of an open or coming stream: puts a line in place of the next chunk, and ends it properly."""
    return Action("end_with", data=line.encode())


# Done to the chunks of a stream rather than to its request.
_STREAM_KINDS = ("silent", "cut_mid_line", "end_with")


def matching(
    *,
    method: str | None = None,
    path: str | None = None,
    verb: str | None = None,
    resource: str | None = None,
    template: str | None = None,
    body: str | None = None,
    where: Match | None = None,
) -> Match:
    """A predicate: all that is given must hold. `path` is a shell pattern, `body` a substring of
    the decoded body, `resource` as in Request.resource ("pods/status").
    """

    def match(request: Request) -> bool:
        return (
            (method is None or request.method == method)
            and (verb is None or request.verb == verb)
            and (resource is None or request.resource == resource)
            and (template is None or request.template == template)
            and (path is None or fnmatch.fnmatchcase(request.path, path))
            and (body is None or body.encode() in request.body)
            and (where is None or where(request))
        )

    return match


def anything(_: Request) -> bool:
    """Matches every request."""
    return True


class Rule:
    """An action waiting for its occasion. `fired` counts how often it was taken."""

    def __init__(self, gate: Gate, match: Match, action: Action, nth: int, times: int | None):
        self.action = action
        self.fired = 0
        self.exchanges: list[Exchange] = []
        self._gate = gate
        self._match = match
        self._skip = nth - 1
        self._times = times
        self._done = threading.Event()

    def claims(self, request: Request) -> bool:
        """Whether this is its occasion; counts it."""
        if self._times is not None and self.fired >= self._times:
            return False
        try:
            if not self._match(request):
                return False
        except Exception:
            self._gate.errors.append(traceback.format_exc())
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        self.fired += 1
        return True

    def finish(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        self._done.set()

    def wait(self, timeout: float = 30.0) -> Exchange:
        """Waits until the action was carried out once; returns its (latest) exchange."""
        if not self._done.wait(timeout):
            raise TimeoutError(
                f"no request met the rule ({self.action.kind}) within {timeout:g} s; seen since "
                f"the gate started: {self._gate.summary()}"
            )
        return self.exchanges[-1]

    def remove(self) -> None:
        """Takes the rule away. A stream that it silenced stays silent."""
        self._gate._remove(self)


@dataclasses.dataclass(frozen=True)
class Seen:
    """One request in the gate's log. Status 0: no answer was passed on."""

    at: float
    verb: str
    resource: str
    template: str
    path: str
    query: dict[str, str]
    status: int


class Gate:
    """One listener and the server behind it. Make it with Gate.tls or Gate.unix."""

    def __init__(
        self,
        listen: Callable[[Any], Coroutine[Any, Any, asyncio.Server]],
        connect: Callable[
            [], Coroutine[Any, Any, tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        ],
    ) -> None:
        self.url = ""
        self.socket = pathlib.Path()
        #: Tracebacks of matches and functions that threw. A test should end with none.
        self.errors: list[str] = []
        self._listen = listen
        self._connect = connect
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._log: collections.deque[Seen] = collections.deque(maxlen=200_000)
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._workers = concurrent.futures.ThreadPoolExecutor(64, thread_name_prefix="gate-action")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate", daemon=True)
        self._thread.start()
        self._closed = False
        self._call(self._open())

    @classmethod
    def tls(cls, cluster: ServesTls) -> Gate:
        """A gate in front of a cluster's API server; its certificate is of the cluster's CA."""
        port = cluster.reserve_port()
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(*cluster.issue_serving_cert(f"gate-{port}"))
        serving.set_alpn_protocols(["http/1.1"])
        verifying = ssl.create_default_context(cafile=str(cluster.ca))
        address = urllib.parse.urlsplit(cluster.server)

        gate = cls(
            lambda handle: asyncio.start_server(
                handle, "127.0.0.1", port, ssl=serving, limit=http1.READ_LIMIT, backlog=1024
            ),
            lambda: asyncio.open_connection(
                address.hostname, address.port, ssl=verifying, limit=http1.READ_LIMIT
            ),
        )
        gate.url = f"https://127.0.0.1:{port}"
        return gate

    @classmethod
    def unix(
        cls, upstream: str | os.PathLike[str], listen: str | os.PathLike[str]
    ) -> Gate:
        """A gate at the socket `listen` in front of the socket `upstream`."""
        path = os.fspath(listen)
        gate = cls(
            lambda handle: asyncio.start_unix_server(
                handle, path, limit=http1.READ_LIMIT, backlog=1024
            ),
            lambda: asyncio.open_unix_connection(os.fspath(upstream), limit=http1.READ_LIMIT),
        )
        gate.socket = pathlib.Path(path)
        gate.url = f"unix://{path}"
        return gate

    # Rules

    def on(self, match: Match, action: Action, *, nth: int = 1, times: int | None = 1) -> Rule:
        """From now on: at the nth occasion that matches, and `times` in all (None: for ever), do
        the action. For the actions on streams each chunk is an occasion. Several rules may act on
        one request, in the order in which they were made.
        """
        rule = Rule(self, match, action, nth, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Takes all rules away."""
        with self._lock:
            self._rules.clear()

    def _remove(self, rule: Rule) -> None:
        with self._lock:
            if rule in self._rules:
                self._rules.remove(rule)

    def claim(self, request: Request, *, stream: bool) -> list[Rule]:
        """The rules that act on this request (or on this chunk of its answer)."""
        with self._lock:
            rules = list(self._rules)
        found = []
        for rule in rules:
            on_stream = rule.action.kind in _STREAM_KINDS
            wanted = on_stream if stream else (not on_stream or rule.action.kind == "silent")
            if wanted and rule.claims(request):
                found.append(rule)
        return found

    # The line as a whole

    def block(self) -> None:
        """Refuses every connection and cuts those that are open, until unblock()."""
        self._call(self._shut())

    def unblock(self) -> None:
        """Listens again, on the same address."""
        self._call(self._open())

    def cut(self, match: Match = anything) -> int:
        """Closes the connections whose present (or last) request matches; returns how many."""

        async def close() -> int:
            found = [c for c in self._connections if c.request is not None and match(c.request)]
            for connection in found:
                connection.abort()
            return len(found)

        return self._call(close())

    def close(self) -> None:
        """Ends the gate and all its connections."""
        if self._closed:
            return
        self._closed = True
        self._call(self._shut())
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What was seen

    def requests(self, match: Callable[[Seen], bool] = lambda _: True) -> list[Seen]:
        """The log of requests since the start or the last reset(), oldest first."""
        return [seen for seen in list(self._log) if match(seen)]

    def counts(self) -> collections.Counter[tuple[str, str, int]]:
        """How many requests there were by (verb, path template, status)."""
        return collections.Counter((s.verb, s.template, s.status) for s in list(self._log))

    def count(
        self, *, verb: str | None = None, resource: str | None = None, status: int | None = None
    ) -> int:
        """How many requests there were; what is not given is not looked at."""
        return sum(
            (verb is None or s.verb == verb)
            and (resource is None or s.resource == resource)
            and (status is None or s.status == status)
            for s in list(self._log)
        )

    def reset(self) -> None:
        """Empties the log and the counts."""
        self._log.clear()

    def summary(self) -> str:
        """The counts on one line."""
        lines = (f"{n} {verb} {path} {code}" for (verb, path, code), n in self.counts().items())
        return "; ".join(sorted(lines)) or "nothing"

    def note(self, request: Request, status: int) -> None:
        """Writes a request to the log."""
        self._log.append(
            Seen(
                time.monotonic(),
                request.verb,
                request.resource,
                request.template,
                request.path,
                request.query,
                status,
            )
        )

    # In the gate's own thread

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self) -> None:
        if self._server is None:
            self._server = await self._listen(self._serve)

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self.socket != pathlib.Path():
            self.socket.unlink(missing_ok=True)
        tasks = [connection.task for connection in self._connections]
        for connection in list(self._connections):
            connection.abort()
        if tasks:
            await asyncio.wait(tasks, timeout=10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(self, reader, writer)
        self._connections.add(connection)
        try:
            await connection.run()
        except (OSError, EOFError, ssl.SSLError, asyncio.CancelledError):
            # Connections that break are this program's purpose.
            pass
        except Exception:
            self.errors.append(traceback.format_exc())
        finally:
            self._connections.discard(connection)
            connection.abort()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await self._connect()

    async def perform(self, rule: Rule, exchange: Exchange) -> None:
        """Calls a rule's function in a worker thread."""
        assert rule.action.function is not None
        try:
            await self._loop.run_in_executor(self._workers, rule.action.function, exchange)
        except Exception:
            self.errors.append(traceback.format_exc())
        rule.finish(exchange)


class _Connection:
    """One client's connection and the one to the server that goes with it."""

    def __init__(
        self, gate: Gate, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.request: Request | None = None
        self.task = asyncio.current_task()
        self._gate = gate
        self._reader = reader
        self._writer = writer
        self._up_reader: asyncio.StreamReader | None = None
        self._up_writer: asyncio.StreamWriter | None = None
        # The next request's first byte, read while waiting for the end of a stream.
        self._read_ahead = b""

    def abort(self) -> None:
        """Closes both sides at once and ends the task."""
        self._writer.transport.abort()
        self._drop_upstream()
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()

    async def run(self) -> None:
        while True:
            raw = await http1.read_head(self._reader)
            if raw is None:
                return
            raw, self._read_ahead = self._read_ahead + raw, b""
            self.request = request = http1.parse_request(raw)
            if (request.header("Expect") or "").lower() == "100-continue":
                self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await http1.read_request_body(self._reader, request)
            if not await self._handle(request):
                await self._finish_writing()
                return

    async def _handle(self, request: Request) -> bool:
        """One exchange; whether the connection can carry another one."""
        rules = self._gate.claim(request, stream=False)
        exchange = Exchange(request)
        for rule in rules:
            action = rule.action
            if action.kind == "before":
                await self._gate.perform(rule, exchange)
            elif action.kind == "delay":
                await asyncio.sleep(action.seconds)
                rule.finish(exchange)
            elif action.kind == "answer":
                self._gate.note(request, action.status)
                self._writer.write(action.data)
                await self._writer.drain()
                rule.finish(exchange)
                return not request.closes
            elif action.kind == "drop_before":
                self._gate.note(request, 0)
                rule.finish(exchange)
                raise ConnectionAbortedError("as a rule says")
            elif action.kind == "silent":
                self._gate.note(request, 0)
                rule.finish(exchange)
                await self._swallow()
                raise ConnectionAbortedError("the client gave up")
        return await self._forward(request, exchange, rules)

    async def _forward(self, request: Request, exchange: Exchange, rules: list[Rule]) -> bool:
        up_reader, up_writer = await self._upstream()
        up_writer.write(request.raw + request.body_raw)
        await up_writer.drain()
        response = await self._response(up_reader)
        if response is None:
            self._gate.note(request, 0)
            raise ConnectionAbortedError("the server closed without an answer")
        exchange.response = response

        late = [r for r in rules if r.action.kind in ("after", "drop_after", "delay_answer")]
        body: bytes | None = None
        if late and not request.is_stream:
            body = await self._read_body(request, response, up_reader)
        for rule in late:
            if rule.action.kind == "after":
                await self._gate.perform(rule, exchange)
            elif rule.action.kind == "delay_answer":
                await asyncio.sleep(rule.action.seconds)
                rule.finish(exchange)
            else:
                self._gate.note(request, 0)
                rule.finish(exchange)
                raise ConnectionAbortedError("as a rule says")

        self._gate.note(request, response.status)
        self._writer.write(response.raw)
        ends = request.closes or response.closes
        if body is not None:
            self._writer.write(body)
            await self._writer.drain()
            return not ends
        if response.status == 101:
            await self._pipe(up_reader, up_writer)
            return False
        if response.chunked:
            return await self._relay_chunks(request, up_reader) and not ends
        length = http1.body_length(request, response)
        if length is None:
            await self._pipe(up_reader, up_writer)
            return False
        while length > 0:
            data = await up_reader.read(min(length, http1.READ_SIZE))
            if not data:
                raise ConnectionAbortedError("the server closed in the middle of its answer")
            length -= len(data)
            self._writer.write(data)
            await self._writer.drain()
        await self._writer.drain()
        return not ends

    async def _upstream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._up_reader is not None and self._up_reader.at_eof():
            self._drop_upstream()
        if self._up_reader is None or self._up_writer is None:
            self._up_reader, self._up_writer = await self._gate.connect()
        return self._up_reader, self._up_writer

    def _drop_upstream(self) -> None:
        if self._up_writer is not None:
            self._up_writer.transport.abort()
        self._up_reader = self._up_writer = None

    async def _response(self, reader: asyncio.StreamReader) -> Response | None:
        """The final answer's head; 100 Continue is for the gate, which has sent the body."""
        while True:
            response = await http1.read_response_head(reader)
            if response is None or response.status != 100:
                return response

    async def _read_body(
        self, request: Request, response: Response, reader: asyncio.StreamReader
    ) -> bytes:
        """The whole body as received; the decoded one goes to response.body."""
        if response.chunked:
            frames, payload = [], []
            async for frame, data in http1.chunks(reader):
                frames.append(frame)
                payload.append(data)
            response.body = b"".join(payload)
            return b"".join(frames)
        length = http1.body_length(request, response)
        raw = await reader.read() if length is None else await reader.readexactly(length)
        response.body = raw
        return raw

    async def _relay_chunks(self, request: Request, reader: asyncio.StreamReader) -> bool:
        """Passes a chunked body on. The end of the client's interest ends a stream."""
        relay = asyncio.ensure_future(self._relay(request, reader))
        if not request.is_stream:
            return await relay
        # A client that waits for events says nothing more: what comes is its end, or, just after
        # the end of the stream, the beginning of its next request.
        heard = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait((relay, heard), return_when=asyncio.FIRST_COMPLETED)
            if heard.done():
                self._read_ahead = heard.result()
                if not self._read_ahead and not relay.done():
                    raise ConnectionAbortedError("the client left")
            return await relay
        finally:
            # Cancelling a read takes nothing from the stream.
            for task in (relay, heard):
                task.cancel()
            await asyncio.gather(relay, heard, return_exceptions=True)

    async def _relay(self, request: Request, reader: asyncio.StreamReader) -> bool:
        async for frame, payload in http1.chunks(reader):
            if payload and request.is_stream:
                for rule in self._gate.claim(request, stream=True):
                    rule.finish(Exchange(request))
                    if rule.action.kind == "silent":
                        await self._never(reader)
                    if rule.action.kind == "cut_mid_line":
                        start = payload.rstrip(b"\n").rfind(b"\n") + 1
                        half = start + max(1, (len(payload) - start) // 2)
                        self._writer.write(http1.chunk(payload[:half]))
                        return False
                    if rule.action.kind == "end_with":
                        self._writer.write(http1.chunk(rule.action.data) + b"0\r\n\r\n")
                        return False
            self._writer.write(frame)
            await self._writer.drain()
        return True

    async def _finish_writing(self) -> None:
        """Lets the client have what was written before the connection is closed."""
        await self._writer.drain()
        self._writer.close()
        with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
            async with asyncio.timeout(5):
                await self._writer.wait_closed()

    async def _never(self, reader: asyncio.StreamReader) -> None:
        """Takes what the server says and passes on nothing, for as long as the client stays."""
        while await reader.read(http1.READ_SIZE):
            pass
        await asyncio.get_running_loop().create_future()

    async def _swallow(self) -> None:
        """Reads what the client says until it closes."""
        while await self._reader.read(http1.READ_SIZE):
            pass

    async def _pipe(
        self, up_reader: asyncio.StreamReader, up_writer: asyncio.StreamWriter
    ) -> None:
        """Both directions as they come, until the server ends (upgraded and unframed answers)."""

        async def upwards() -> None:
            while data := await self._reader.read(http1.READ_SIZE):
                up_writer.write(data)
                await up_writer.drain()
            if up_writer.can_write_eof():
                up_writer.write_eof()
            else:
                up_writer.transport.abort()

        task = asyncio.ensure_future(upwards())
        try:
            while data := await up_reader.read(http1.READ_SIZE):
                self._writer.write(data)
                await self._writer.drain()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
