"""Writes the seeds of the fuzz targets: what a well-behaved client says.

    python3 test/fuzz/make_corpus.py FOLDER     one folder for each target is made in it
"""

from __future__ import annotations

import pathlib
import re
import struct
import sys
import zlib

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "vk-provider" / "net" / "spdy_headers.cpp"


def dictionary() -> bytes:
    """That of SPDY/3, from the source that has it."""
    text = SOURCE.read_text()
    words = re.findall(r'"([^"]+)"', text[text.index("kWords") : text.index("kText")])
    tail = text[text.index("kText =") :]
    tail = "".join(re.findall(r'"([^"]+)"', tail[: tail.index(";\n")]))
    return b"".join(struct.pack(">I", len(w)) + w.encode() for w in words) + tail.encode()


def spdy_seeds() -> list[bytes]:
    def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
        return struct.pack(">HHI", 0x8003, kind, flags << 24 | len(payload)) + payload

    def data(stream: int, payload: bytes, flags: int = 0) -> bytes:
        return struct.pack(">II", stream, flags << 24 | len(payload)) + payload

    def conversation(*headers: dict[str, str]) -> bytes:
        deflate = zlib.compressobj(level=9, zdict=dictionary())
        out, stream = b"", 1
        for fields in headers:
            block = struct.pack(">I", len(fields))
            for name, value in fields.items():
                block += struct.pack(">I", len(name)) + name.encode()
                block += struct.pack(">I", len(value)) + value.encode()
            packed = deflate.compress(block) + deflate.flush(zlib.Z_SYNC_FLUSH)
            out += control(1, struct.pack(">IIBB", stream, 0, 0, 0) + packed)
            stream += 2
        out += data(1, b"", 1) + data(3, b"hello\n") + control(6, struct.pack(">I", 1))
        out += control(4, struct.pack(">III", 1, 7, 65536)) + control(9, struct.pack(">II", 3, 100))
        out += control(3, struct.pack(">II", 3, 5)) + control(7, struct.pack(">II", 0, 0))
        return out

    kinds = [{"streamtype": kind} for kind in ("error", "stdin", "stdout", "stderr", "resize")]
    pair = [{"streamtype": kind, "port": "80", "requestid": "0"} for kind in ("error", "data")]
    return [conversation(*kinds), conversation(*pair), conversation({"many": "a\0b\0c"}, {})]


def channel_seeds() -> list[bytes]:
    return [
        b"\x00\xff\x00hello",
        b"\x02\xff\xff\x00",
        b"\x01\x020aGVsbG8=",
        b'\x00\x05\x04{"Width":80,"Height":24}{"Width":100,"Height":30}',
        b"\x01\x004eyJXaWR0aCI6ODAsIkhlaWdodCI6MjR9",
    ]


def http_seeds() -> list[bytes]:
    requests = [
        "GET /containerLogs/default/web/main?follow=true&tailLines=10 HTTP/1.1\r\nHost: a:10250\r\n\r\n",
        "POST /exec/default/web/main?command=ls&command=-l&input=1&output=1 HTTP/1.1\r\nHost: a\r\n"
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v5.channel.k8s.io\r\n"
        "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n",
        "GET /exec/default/web/main HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n\r\n",
        "POST /run HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nLong: " + "x" * 70_000 + "\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nTrailer: t\r\n\r\n",
    ]
    cuts = (255, 255, 60, 9, 0, 255, 3)
    return [bytes([cut]) + request.encode() for cut, request in zip(cuts, requests, strict=True)]


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    for target, seeds in (
        ("spdy", spdy_seeds()),
        ("channels", channel_seeds()),
        ("http_request", http_seeds()),
    ):
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(seeds):
            (folder / target / f"seed-{number}").write_bytes(seed)


if __name__ == "__main__":
    main()
