"""Adds one to the model, unless the file of its orders says otherwise.

``raise``: an exception. ``sleep N``: the reply comes N seconds later. ``hang``: the process writes
its number to the file and waits to be killed.
"""

import os
import time
from pathlib import Path

from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message, context):
    file = Path(context.node_config["orders"])
    order = file.read_text().split() if file.exists() else []
    match order:
        case ["raise"]:
            raise RuntimeError("out of memory")
        case ["sleep", seconds]:
            file.unlink()
            time.sleep(float(seconds))
        case ["hang"]:
            temporary = file.with_suffix(".new")
            temporary.write_text(f"pid {os.getpid()}")
            temporary.replace(file)
            time.sleep(600)
    model = message.content["arrays"]["model"].numpy() + 1
    arrays, metrics = ArrayRecord({"model": Array(model)}), MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
