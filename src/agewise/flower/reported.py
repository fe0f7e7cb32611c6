"""Links that clients or a radio controller report: in a CSV file, or to an address on loopback."""

import csv
import hmac
import json
import math
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.checks import whole_number
from agewise.files import parse_json, read_plain, stamp
from agewise.flower.links import POWER, RATE, Gains, Links, gain_of_shares

_MOST_BYTES = 64 * 2**20
_MOST_BODY = 2**20
_LOOPBACK = "127.0.0.1"
#: How long a report may take to come in.
_PATIENCE_S = 10.0
#: What the numbers of a report may be.
_KINDS = ("gains", "shares")


@dataclass(eq=False)
class Reported(Links):
    """Gains, or how many shares of the uplink a client needs, as others report them.

    A CSV file has a line per client: its id, then one number of shares, or a gain for each of the
    ``subchannels``; the head of the table says which: ``client,shares`` or ``client,gain,...``. It
    is read again when it changes. With a ``port`` (0 takes a free one) reports are taken by HTTP on
    the loopback address: ``POST /`` with ``{"client": id, "shares": x}`` or ``"gains": [...]``, and
    the ``token``, if one is set, as ``Authorization: Bearer``. Who was not reported has gain 0.
    """

    subchannels: int
    csv: Path | str | None = None
    port: int | None = None
    token: str | None = field(default=None, repr=False)
    rate_threshold: float = RATE
    power_budget: float = POWER
    _rows: dict[str, Gains] = field(default_factory=dict, init=False, repr=False)
    _stamp: tuple[int, ...] = field(default=(), init=False, repr=False)
    _server: ThreadingHTTPServer | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        whole_number("subchannels", self.subchannels, least=1)
        if (self.csv is None) == (self.port is None):
            raise ValueError("reported links need a csv file or a port, one of the two")
        if self.port is not None:
            self._server = _serve(self, whole_number("port", self.port, most=65535))

    @property
    def address(self) -> str:
        """Where reports are taken, such as http://127.0.0.1:8080/."""
        if self._server is None:
            raise ValueError("these links are read from a file")
        return f"http://{_LOOPBACK}:{self._server.server_address[1]}/"

    def gains(self, t: int, ids: Sequence[str]) -> Gains:  # noqa: ARG002
        """What was reported last of each."""
        if self.csv is not None:
            self._read(Path(self.csv))
        unknown = np.zeros(self.subchannels)
        return np.array([self._rows.get(id_, unknown) for id_ in ids]).reshape(-1, self.subchannels)

    def take(self, client: str, kind: str, values: object) -> None:
        """Take one report; ``ValueError`` in one sentence if it cannot be right."""
        if kind not in _KINDS:
            raise ValueError(f"a report has shares or gains, not {kind!r}")
        numbers = _numbers(values, client)
        if kind == "shares":
            (x,) = numbers if numbers.size == 1 else (math.nan,)
            if not x > 0:
                raise ValueError(f"client {client}: shares must be one positive number")
            if (self.rate_threshold, self.power_budget) != (RATE, POWER):
                raise ValueError("shares go with the usual rate threshold and power budget")
            reach = x <= self.subchannels
            gain = float(gain_of_shares(np.array([x]))[0]) if reach else 0.0
            numbers = np.full(self.subchannels, gain)
        if numbers.shape != (self.subchannels,):
            raise ValueError(
                f"client {client}: {numbers.size} gains for {self.subchannels} subchannels"
            )
        self._rows[client] = numbers

    def state(self) -> dict[str, NDArray[Any]]:
        """The last reports, by client."""
        rows = self._rows.copy()  # reports may come meanwhile
        if not rows:
            return {}
        return {"clients": np.array(list(rows)), "gains": np.array([*rows.values()])}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on with these reports."""
        if state:
            pairs = zip(state["clients"].tolist(), state["gains"], strict=True)
            self._rows = {client: np.array(gains) for client, gains in pairs}

    def close(self) -> None:
        """Take no more reports."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _read(self, path: Path) -> None:
        try:
            now = stamp(path)
            if now == self._stamp:
                return
            text = read_plain(path, _MOST_BYTES).decode("utf-8-sig")
            head, *lines = list(csv.reader(text.splitlines())) or [[]]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path}: the reported links cannot be read: {error}") from error
        kind = {"shares": "shares", "gain": "gains"}.get(head[1].strip() if len(head) > 1 else "")
        if kind is None:
            raise ValueError(f"{path}: its first line must be client,shares or client,gain,...")
        self._rows = {}
        for number, line in enumerate(lines, start=2):
            if line:
                try:
                    self.take(line[0].strip(), kind, [float(cell) for cell in line[1:]])
                except ValueError as error:
                    raise ValueError(f"{path}, line {number}: {error}") from error
        self._stamp = now


def _numbers(values: object, client: str) -> NDArray[np.float64]:
    given = values if isinstance(values, list) else [values]
    if not all(isinstance(x, int | float) and 0 <= x <= sys.float_info.max for x in given):
        raise ValueError(f"client {client}: what is reported must be non-negative, finite numbers")
    return np.array(given, np.float64)


def _serve(links: Reported, port: int) -> ThreadingHTTPServer:
    """A server on the loopback address, in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S

        def do_POST(self) -> None:
            try:
                self._answer(*self._taken())
            except ValueError as error:
                self._answer(400, str(error))

        def _taken(self) -> tuple[int, str]:
            wanted = f"Bearer {links.token}"
            given = self.headers.get("Authorization", "")
            if links.token is not None and not hmac.compare_digest(wanted.encode(), given.encode()):
                return 401, "a token is needed"
            length = int(self.headers.get("Content-Length", "0"))
            if not 0 <= length <= _MOST_BODY:
                return 413, "the report is too long"
            report = parse_json(self.rfile.read(length).decode("utf-8"))
            client = report.pop("client", None) if isinstance(report, dict) else None
            if not isinstance(report, dict) or not isinstance(client, str) or len(report) != 1:
                raise ValueError("a report is a JSON object with client and shares or gains")
            ((kind, values),) = report.items()
            links.take(client, kind, values)
            return 200, "taken"

        def _answer(self, status: int, text: str) -> None:
            content = json.dumps({"message": text}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Reports are no news."""

    try:
        server = ThreadingHTTPServer((_LOOPBACK, port), Handler)
    except OSError as error:
        raise ValueError(f"port {port} on {_LOOPBACK} is not free: {error.strerror}") from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
