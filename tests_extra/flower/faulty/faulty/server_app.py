"""Every client in every round, as long as it is there and owes no reply."""

from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

from agewise.flower import Clients, Scheduled, Slots, Timeouts

app = ServerApp()


@app.main()
def main(grid, context):
    config = context.run_config
    ids = Path(config["client-ids"]).read_text().split()
    strategy = Scheduled(
        FedAvg(fraction_evaluate=0.0, min_available_nodes=config["clients"]),
        policy="age-based",
        links=Slots(config["clients"]),
        timeouts=Timeouts(deadline_s=config["deadline-s"], wait_s=60.0),
        clients=Clients(dict.fromkeys(ids, 1)),
        folder=config["folder"],
    )
    arrays = ArrayRecord({"model": Array(np.zeros(4, np.float32))})
    strategy.start(grid, arrays, num_rounds=config["num-server-rounds"])
