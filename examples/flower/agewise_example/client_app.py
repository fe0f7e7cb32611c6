"""The client: trains on its own samples and reports how many it has and its loss."""

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from agewise.flower import identify

from .task import PADDING, make_model, padded

app = identify(ClientApp())


@app.train()
def train(message: Message, context: Context) -> Message:
    """Local steps from the model that the server sent."""
    config, client = context.run_config, int(context.node_config["partition-id"])
    t = int(message.content["config"]["server-round"]) - 1
    sent = message.content["arrays"]
    arrays = {name: array.numpy() for name, array in sent.items() if name != PADDING}
    model = make_model(config)
    made = padded(model.train(arrays, client, t), int(config["update-bytes"]), client, t)
    metrics = {
        "num-examples": model.size(client),
        "start-loss": model.loss(arrays, client),
        "client": client,
    }
    record = ArrayRecord({name: Array(array) for name, array in made.items()})
    return Message(
        RecordDict({"arrays": record, "metrics": MetricRecord(metrics)}), reply_to=message
    )
