"""What is used of Flower, in one place."""

from typing import TYPE_CHECKING

from agewise.extras import require

if TYPE_CHECKING:
    from flwr.app import (
        Array,
        ArrayRecord,
        ConfigRecord,
        Message,
        MessageType,
        MetricRecord,
        RecordDict,
    )
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Bulyan, FedAvg, FedAvgM, FedXgbCyclic, Result, Strategy
    from flwr.serverapp.strategy.fedopt import FedOpt
    from flwr.supercore import log
else:
    _app = require("flwr.app", "flower")
    _strategies = require("flwr.serverapp.strategy", "flower")
    Array, ArrayRecord, ConfigRecord = _app.Array, _app.ArrayRecord, _app.ConfigRecord
    Message, MessageType, MetricRecord = _app.Message, _app.MessageType, _app.MetricRecord
    RecordDict = _app.RecordDict
    ClientApp = require("flwr.clientapp", "flower").ClientApp
    Grid = require("flwr.serverapp", "flower").Grid
    FedAvg, FedAvgM, Result = _strategies.FedAvg, _strategies.FedAvgM, _strategies.Result
    Bulyan, FedXgbCyclic = _strategies.Bulyan, _strategies.FedXgbCyclic
    Strategy = _strategies.Strategy
    FedOpt = require("flwr.serverapp.strategy.fedopt", "flower").FedOpt
    log = require("flwr.supercore", "flower").log

__all__ = [
    "Array",
    "ArrayRecord",
    "Bulyan",
    "ClientApp",
    "ConfigRecord",
    "FedAvg",
    "FedAvgM",
    "FedOpt",
    "FedXgbCyclic",
    "FederationError",
    "Grid",
    "Message",
    "MessageType",
    "MetricRecord",
    "RecordDict",
    "Result",
    "Strategy",
    "log",
]


class FederationError(RuntimeError):
    """The federation cannot go on; the message says why and what to do, in one sentence."""
