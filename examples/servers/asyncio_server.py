"""A federation on an asyncio server of its own, whose clients hold a connection open; no Flower.

In each round the server sends the model to those that Agewise chooses, and waits for their updates
until the deadline. How long an update takes to come in says how fast its client's link is.
"""

import asyncio
import time

import numpy as np
from numpy.typing import NDArray

from agewise.flower import Airtime, RoundPlanner, UploadTiming

ROUNDS, DEADLINE_S = 6, 20.0
MODEL = np.zeros(1000, np.float32)


class Server:
    """A model, who is connected, and who trains when."""

    def __init__(self) -> None:
        self.model, self.links = MODEL, Airtime(shares=2, deadline_s=DEADLINE_S)
        self.planner = RoundPlanner(["age-based"], self.links)
        self.clients: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take in a client, whose first line is its name."""
        self.clients[(await reader.readline()).decode().strip()] = reader, writer

    async def ask(self, row: int) -> NDArray[np.float32]:
        """Send the model to a client and wait for its own."""
        reader, writer = self.clients[self.planner.ids[row]]
        asked = time.monotonic()
        writer.write(self.model.tobytes())
        first = await reader.readexactly(1)
        began = time.monotonic()
        data = first + await reader.readexactly(self.model.nbytes - 1)
        ended = time.monotonic()
        timing = UploadTiming(ended - asked, ended - began, 8.0 * len(data))
        self.links.observe(self.planner.t, row, timing)
        return np.frombuffer(data, np.float32)

    async def train(self) -> None:
        """One round: plan, ask, average, and let the others age."""
        planned = self.planner.plan(self.planner.rows(list(self.clients)))
        rows = planned.chosen.tolist()
        asked = [asyncio.wait_for(self.ask(row), DEADLINE_S) for row in rows]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        models = {r: x for r, x in zip(rows, answers, strict=True) if isinstance(x, np.ndarray)}
        for row in set(rows) - models.keys():  # late, or gone: it may connect again
            self.links.miss(planned.t, row)
            self.clients.pop(self.planner.ids[row])[1].close()
        if models:
            self.model = np.mean(list(models.values()), axis=0)
        self.planner.receive(planned, np.array(list(models), np.int64))
        print(planned.t, [self.planner.ids[row] for row in models])


async def client(name: str, port: int) -> None:
    """Add one to every weight of the models that come; dora hangs up instead."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{name}\n".encode())
    while data := await reader.read(MODEL.nbytes):
        if name == "dora":
            break
        data += await reader.readexactly(MODEL.nbytes - len(data))
        writer.write((np.frombuffer(data, np.float32) + 1.0).tobytes())
    writer.close()


async def main() -> None:
    """Four clients and a few rounds."""
    server = Server()
    listening = await asyncio.start_server(server.join, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    clients = [asyncio.create_task(client(x, port)) for x in ("anna", "ben", "cleo", "dora")]
    while len(server.clients) < len(clients):
        await asyncio.sleep(0.01)
    for _ in range(ROUNDS):
        await server.train()
    listening.close()
    print("weights", server.model[0], "ages", server.planner.ages)
    for task in clients:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
