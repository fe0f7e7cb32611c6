"""Replies that are no updates count as failed; the federation goes on, its model finite."""

import logging
import re

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import strategy as flower
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import (
    inflate_object_from_contents,
    validate_object_content,
)

from agewise.flower import Clients, Slots
from agewise.flower.replies import ReplyCheck
from agewise.learn import UpdateMemory
from tests.scenarios import tiny
from tests_extra.flower.federations import InProcessGrid, Problem, id_of

CLIENTS, ROUNDS, LIAR = 6, 4, 4
SIZES = {id_of(k): 5 for k in range(CLIENTS)}
WEIGHT, NAN, INF = np.ones((3, 4), np.float32), float("nan"), float("inf")


def model(**changes):
    """A record of arrays: a matrix, a vector, and a counter of batches."""
    arrays = {"weight": WEIGHT, "bias": np.zeros(4, np.float32), "batches": np.array(3)} | changes
    return ArrayRecord({n: a if isinstance(a, Array) else Array(a) for n, a in arrays.items()})


def declared(shape, data, dtype="float32"):
    return Array(dtype=dtype, shape=shape, stype="numpy.ndarray", data=data)


def head(shape, dtype="<f4"):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def weights(value):
    return {"arrays": model(weight=value)}


def metrics(**changes):
    found = {"num-examples": 5, "start-loss": 0.5} | changes
    return {"metrics": MetricRecord({k: v for k, v in found.items() if v is not None})}


#: What a reply has in the place of an honest record; ``None`` leaves a record out.
LIES = {
    "nan": weights(WEIGHT * NAN),
    "infinite": weights(WEIGHT * INF),
    "huge": weights(WEIGHT * np.float32(3e38)),
    "one short": weights(np.ones((3, 3), np.float32)),
    "transposed": weights(np.ones((4, 3), np.float32)),
    "scalar": weights(np.array(1.0, np.float32)),
    "int8": weights(WEIGHT.astype(np.int8)),
    "complex": weights(WEIGHT.astype(np.complex64)),
    "text": weights(WEIGHT.astype(str)),
    "another name": {"arrays": ArrayRecord({"w": Array(WEIGHT)})},
    "two arrays": {"arrays": model(more=WEIGHT)},
    "two records": {"more": model()},
    "no record": {"arrays": None},
    "empty record": {"arrays": ArrayRecord()},
    "empty array": weights(np.empty((0,), np.float32)),
    "pickled": weights(declared((3, 4), head((3, 4), "|O") + b"\x80\x04N.")),
    "object bytes": weights(declared((3, 4), b"cposix\nsystem\n(S'true'\ntR.")),
    "declared 2^40": weights(declared((2**40,), head((2**40,)))),
    "no metrics": {"metrics": None},
    "two metric records": {"more": MetricRecord({"num-examples": 5})},
    "extra metric": metrics(more=1.0),
    "hostile metric": metrics(**{"a\n\x1b[31m" + "x" * 10_000: 1.0}),
    **{
        f"{size!r:.20} samples": metrics(**{"num-examples": size})
        for size in (NAN, INF, -INF, -5, 0, 0.4, 2**53, 2**60, 1e300, [5, 5])
    },
    **{
        f"loss {loss!r:.20}": metrics(**{"start-loss": loss})
        for loss in (NAN, INF, -1e300, [0.5], None)
    },
    # beyond the list
    "counter that is none": {"arrays": model(batches=np.array(3.5))},
    "a list of NaN": metrics(**{"start-loss": [NAN]}),
    "cut off": weights(declared((3, 4), head((3, 4)) + bytes(40))),
    "shape said twice": weights(declared((3, 4), head((12,)) + bytes(48))),
    "no array of NumPy's": weights(
        Array(dtype="float32", shape=(3, 4), stype="torch.Tensor", data=Array(WEIGHT).data)
    ),
    "shape of less than nothing": weights(declared((3, 4), head((-3, -4)) + bytes(48))),
    "no number of a type": weights(declared((3, 4), head((3,), "m8[s]") + bytes(24))),
    "a deep head": weights(declared((3, 4), b"\x93NUMPY\x01\x00\xff\x0f" + b"(" * 4095)),
    "counter of another sign": {"arrays": model(batches=np.array(3, np.uint64))},
    "as many numbers in one more dimension": weights(WEIGHT[..., np.newaxis]),
    "nameless metric": metrics(**{"": 1.0}),
    "a million metrics": metrics(more=[1.0] * 10**6),
    "another record": {"arrays": None, "model": model()},
}


#: What stands in the place of an object's bytes; Flower's SuperLink accepts them all.
GARBLED = {
    "no text": b"\xff\xfe",
    "nothing": b"",
    "a number": b"5",
    "an empty list": b"[]",
    "an empty object": b"{}",
    "another object": b'{"arrays": "x", "arraychunk_ids": [7], "dtype": 1, "shape": 2, "stype": 3}',
    "deep brackets": b"[" * 100_000,
}


class GarblingGrid(InProcessGrid):
    """Replies come as bytes; of the liar's, objects of one type have a garbled body."""

    def __init__(self, app, kind, body):
        super().__init__(app, lambda _: range(CLIENTS))
        self.kind, self.body = kind, body

    def pull_messages(self, message_ids):
        return [self.unpacked(reply) for reply in super().pull_messages(message_ids)]

    def unpacked(self, reply):
        contents = {id_: x.deflate() for id_, x in get_all_nested_objects(reply).items()}
        for id_, content in contents.items():
            kind, children, _ = content.partition(b"\0")[0].split(b" ")
            if kind == self.kind.encode() and reply.metadata.src_node_id == 1000 + LIAR:
                length = str(len(self.body)).encode()
                contents[id_] = b" ".join((kind, children, length)) + b"\0" + self.body
                validate_object_content(contents[id_])
        return inflate_object_from_contents(reply.object_id, contents)


class Federation:
    """Six clients of which one replies with a lie, or with garbled bytes."""

    def __init__(self, lie=None, garbled=None):
        self.lie = lie or {}
        app = ClientApp()
        app.train()(self.train)
        app.evaluate()(self.evaluate)
        app.query("agewise")(self.say)
        self.grid = InProcessGrid(app, lambda _: range(CLIENTS))
        if garbled is not None:
            self.grid = GarblingGrid(app, *garbled)

    def reply(self, message, context, records):
        if context.node_config["partition-id"] == LIAR:
            records = {name: x for name, x in (records | self.lie).items() if x is not None}
        return Message(RecordDict(records), reply_to=message)

    def train(self, message, context):
        old = {name: array.numpy() for name, array in message.content["arrays"].items()}
        new = {name: np.asarray(x + np.array(1, x.dtype)) for name, x in old.items()}
        return self.reply(message, context, {"arrays": model(**new)} | metrics())

    def evaluate(self, message, context):
        return self.reply(message, context, metrics())

    def say(self, message, context):
        name = ConfigRecord({"id": id_of(context.node_config["partition-id"])})
        return Message(RecordDict({"agewise": name}), reply_to=message)

    def start(self, inner=None, policy="oort", **options):
        inner = inner or flower.FedAvg(fraction_evaluate=0.0)
        options = {"clients": Clients(SIZES)} | options
        strategy = Problem(tiny()).scheduled(policy, Slots(CLIENTS), inner=inner, **options)
        return strategy, strategy.start(self.grid, model(), ROUNDS, timeout=5.0)


def refusals(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING
            and "refused" in r.getMessage()]  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_counts_as_failed(lie, caplog):
    """One line names the client and the reason, and everybody else trains as if it were away."""
    strategy, result = Federation(LIES[lie]).start()
    found = {name: array.numpy() for name, array in result.arrays.items()}
    assert found["weight"].tolist() == (WEIGHT + ROUNDS).tolist()
    assert found["bias"].tolist() == [ROUNDS] * 4
    assert found["batches"] == 3 + ROUNDS
    assert found["batches"].dtype == np.int64
    assert strategy.ages.tolist() == [0, 0, 0, 0, ROUNDS, 0]
    rounds = result.train_metrics_clientapp.values()
    assert [each["agewise-failed"] for each in rounds] == [[LIAR], [], [LIAR], []]
    said = refusals(caplog)
    assert len(said) == 2
    assert all(line.startswith(f"refused the reply of client {id_of(LIAR)}: ") for line in said)
    assert all(line.isprintable() and len(line) < 300 for line in said)


@pytest.mark.parametrize("body", GARBLED)
@pytest.mark.parametrize("kind", ["Message", "RecordDict", "ArrayRecord", "Array", "MetricRecord"])
def test_bytes_that_cannot_be_unpacked_count_as_failed(kind, body, caplog):
    """One line says so; the others of the round, and of its evaluation, are there."""
    strategy, result = Federation(garbled=(kind, GARBLED[body])).start(flower.FedAvg(), "age-based")
    assert result.arrays["weight"].numpy().tolist() == (WEIGHT + ROUNDS).tolist()
    assert strategy.ages.tolist() == [0, 0, 0, 0, ROUNDS, 0]
    rounds = result.train_metrics_clientapp.values()
    assert [each["agewise-failed"] for each in rounds] == [[LIAR], [], [LIAR], []]
    assert len(result.evaluate_metrics_clientapp) == ROUNDS
    said = [line for line in refusals(caplog) if "evaluation" not in line]
    assert len(said) == 2
    assert all(line.startswith(f"refused the reply of client {id_of(LIAR)}: ") for line in said)


def test_a_client_that_cannot_be_understood_is_left_out(caplog):
    federation = Federation(garbled=("ConfigRecord", b"x"))
    strategy, _ = federation.start(policy="age-based", clients=Clients(SIZES, ask=True))
    assert strategy.ages.tolist() == [0, 0, 0, 0, ROUNDS, 0]
    assert f"node {1000 + LIAR} is left out" in caplog.text


def test_nobody_answers_for_another_client(caplog):
    federation = Federation()
    pull = federation.grid.pull_messages

    def forged(ids):
        for reply in (found := pull(ids)):
            if reply.metadata.src_node_id == 1000 + LIAR:
                reply.metadata.__dict__["_reply_to_message_id"] = "message 1"
        return found

    federation.grid.pull_messages = forged
    strategy, _ = federation.start(policy="age-based")
    assert strategy.ages.tolist() == [0, 0, 0, 0, ROUNDS, 0]
    assert "it cannot be read as an answer" in refusals(caplog)[0]


def test_an_error_of_the_connection_is_no_reply():
    class ConnectionLost(Exception):
        pass

    federation = Federation()

    def fail(_):
        raise ConnectionLost

    federation.grid.pull_messages = fail
    with pytest.raises(ConnectionLost):
        federation.start(policy="age-based")


@pytest.mark.parametrize("inner", ["FedAdam", "FedMedian", "Krum", "FedTrimmedAvg"])
@pytest.mark.parametrize("lie", ["nan", "one short", "extra metric", "2**53"])
def test_other_strategies_go_on_as_well(inner, lie):
    lies = LIES.get(lie, metrics(**{"num-examples": 2**53}))
    _, result = Federation(lies).start(getattr(flower, inner)(fraction_evaluate=0.0), "age-based")
    assert all(np.isfinite(array.numpy()).all() for array in result.arrays.values())
    assert len(result.train_metrics_clientapp) == ROUNDS


@pytest.mark.parametrize("lie", [name for name, lie in LIES.items() if "metrics" in lie])
def test_lies_about_evaluation_are_left_out(lie, caplog):
    _, result = Federation({"metrics": None} | LIES[lie]).start(flower.FedAvg(), "age-based")
    found = [dict(each) for each in result.evaluate_metrics_clientapp.values()]
    assert found == [{"start-loss": 0.5}] * ROUNDS
    assert sum("evaluation of node" in line for line in refusals(caplog)) == ROUNDS


def test_updates_far_longer_than_the_others_can_be_refused(caplog):
    """They are plausible one by one, so that is left to the cap."""
    long = weights(WEIGHT * 1e6)
    _, result = Federation(long).start(policy="age-based")
    assert result.arrays["weight"].numpy().max() > 1e5
    caplog.clear()
    _, result = Federation(long).start(policy="age-based", norm_cap=5.0)
    assert result.arrays["weight"].numpy().tolist() == (WEIGHT + ROUNDS).tolist()
    assert re.search(r"norm 3.46e\+06, above the cap of 20", refusals(caplog)[0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("length", [3.0, 0.01])
def test_the_cap_holds_for_numbers_of_any_width(dtype, length):
    sent = ArrayRecord({"model": Array(np.zeros(10_000, dtype))})
    updates = [np.full(10_000, length, dtype)] * 5 + [np.full(10_000, 100.0 * length, dtype)]
    assert list(too_long(sent, updates)) == [5]


def test_no_update_is_long_where_most_others_do_nothing():
    sent = ArrayRecord({"model": Array(np.zeros(10, np.float32))})
    assert too_long(sent, [np.zeros(10, np.float32)] * 2 + [np.ones(10, np.float32)]) == {}


def too_long(sent, models):
    message = Message(RecordDict({"arrays": sent}), 1, "train")
    replies = {
        k: Message(
            RecordDict({"arrays": ArrayRecord({"model": Array(model)})} | metrics()),
            reply_to=message,
        )
        for k, model in enumerate(models)
    }
    check = ReplyCheck([], "num-examples", most_samples=5, norm_cap=5.0)
    return check.refusals(replies, dict.fromkeys(replies, sent))


def test_arrays_in_another_order_are_the_same_model():
    """Also where updates are combined here, as one long vector."""
    turned = ArrayRecord(dict(reversed(list(model(weight=WEIGHT + 1).items()))))
    options = {"aggregation": UpdateMemory(discount="none"), "policy": "age-based"}
    _, result = Federation({"arrays": turned}).start(**options)
    assert result.arrays["weight"].numpy().min() >= 1.0
    assert result.arrays["bias"].numpy().shape == (4,)
