"""A federation on a plain HTTP server, whose clients ask whether there is work; no Flower.

``GET /NAME`` has the model if it is the client's turn to train, and is empty (204) if not;
``POST /NAME`` brings its update. The library has no clock and no sockets: who is there, what a
round waits for and how models travel is the server's.
"""

import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from agewise.flower import RoundPlanner, Slots

ROUNDS, DEADLINE_S, POLL_S = 6, 20.0, 0.005
CLIENTS = ("anna", "ben", "cleo", "dora")


class Federation:
    """A model, whose turn it is, and whose updates came."""

    def __init__(self) -> None:
        self.model, self.planner = np.zeros(1000, np.float32), RoundPlanner(["age-based"], Slots(2))
        self.turn: set[str] = set()
        self.updates: dict[str, bytes] = {}
        self.changed = threading.Condition()

    def train(self) -> None:
        """One round: plan, wait for the updates, average, and let the others age."""
        planned = self.planner.plan(self.planner.rows(CLIENTS))
        names = [self.planner.ids[row] for row in planned.chosen]
        with self.changed:
            self.updates, self.turn = {}, set(names)
            self.changed.wait_for(lambda: len(self.updates) == len(names), DEADLINE_S)
            self.turn, came = set(), self.updates
        whole = [name for name in names if len(came.get(name, b"")) == self.model.nbytes]
        if whole:
            self.model = np.mean([np.frombuffer(came[x], np.float32) for x in whole], axis=0)
        self.planner.receive(planned, self.planner.rows(whole))
        print(planned.t, whole)


class Handler(BaseHTTPRequestHandler):
    """Requests of clients."""

    federation = Federation()

    def do_GET(self) -> None:
        """Give the model to whose turn it is."""
        mine = self.path[1:] in self.federation.turn
        self._answer(200 if mine else 204, self.federation.model.tobytes() if mine else b"")

    def do_POST(self) -> None:
        """Take an update of whose turn it is, once."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        with self.federation.changed:
            if (name := self.path[1:]) in self.federation.turn:
                self.federation.turn.discard(name)
                self.federation.updates[name] = content
                self.federation.changed.notify()
        self._answer(204, b"")

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Be silent."""


def client(name: str, port: int, over: threading.Event) -> None:
    """Add one to every weight of the models that it is given; dora answers with nothing."""

    def ask(method: str, body: bytes | None = None) -> bytes:
        connection = HTTPConnection("127.0.0.1", port)
        connection.request(method, f"/{name}", body)
        return connection.getresponse().read()

    while not over.wait(POLL_S):
        if data := ask("GET"):
            update = np.frombuffer(data, np.float32) + 1.0
            ask("POST", b"" if name == "dora" else update.tobytes())


def main() -> None:
    """Four clients and a few rounds."""
    server, over = ThreadingHTTPServer(("127.0.0.1", 0), Handler), threading.Event()
    work = [threading.Thread(target=server.serve_forever, args=(0.01,))]
    work += [threading.Thread(target=client, args=(x, server.server_port, over)) for x in CLIENTS]
    for each in work:
        each.start()
    federation = Handler.federation
    for _ in range(ROUNDS):
        federation.train()
    over.set()
    for each in work[1:]:
        each.join()
    server.shutdown()
    print("weights", federation.model[0], "ages", federation.planner.ages)


if __name__ == "__main__":
    main()
