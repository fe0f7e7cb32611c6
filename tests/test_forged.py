"""Files of runs that somebody put together so that their checksum holds."""

import io
import json

import polars as pl
import pytest

from agewise.files import NO_CHECKSUM, add_checksum
from agewise.records import History
from agewise.simulation import simulate
from tests.scenarios import tiny


@pytest.fixture(scope="module")
def history():
    return simulate(tiny(**{"run.rounds": 3}), "max-pack")


def forged(history, frame, **changes):
    """The file of a run with other rounds or another description, and a checksum that holds."""
    described = json.loads(pl.read_parquet_metadata(io.BytesIO(history.to_bytes()))["agewise"])
    described |= changes | {"checksum": NO_CHECKSUM}
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"agewise": json.dumps(described)})
    return add_checksum(buffer.getvalue())


FORGERIES = {
    "they do not go from 0 to 2": lambda frame: frame.with_columns(pl.col("round") + 1),
    "owner has a UE that there is not": lambda frame: frame.with_columns(pl.col("owner") + 99),
    "received has a UE that there is not": lambda frame: frame.with_columns(
        pl.lit([-1], pl.List(pl.Int32)).alias("received")
    ),
    "power is not one value for each of 5 subchannels": lambda frame: frame.with_columns(
        pl.col("power").list.head(2)
    ),
    "there is not one rate for each scheduled UE": lambda frame: frame.with_columns(
        pl.lit([], pl.List(pl.Float64)).alias("rate")
    ),
    "there is not one outcome for each scheduled UE": lambda frame: frame.with_columns(
        pl.lit([], pl.List(pl.String)).alias("outcome")
    ),
    "an outcome is none of received, late, outage, battery": lambda frame: frame.with_columns(
        pl.col("outcome").list.eval(pl.element() + "?")
    ),
    "its outcomes do not agree with who was received": lambda frame: frame.with_columns(
        pl.col("received").list.head(1)
    ),
    "there is not one energy for each scheduled UE": lambda frame: frame.with_columns(
        pl.lit([], pl.List(pl.Float64)).alias("energy_j")
    ),
    "there is not one need for each UE in one round": lambda frame: frame.with_columns(
        pl.lit([1] * 12, pl.List(pl.Int32)).alias("need")
    ),
    "a need is not from 0 to 5": lambda frame: frame.with_columns(pl.col("need") + 5),
    "there are gains without needs": lambda frame: frame.with_columns(
        pl.lit(None, pl.List(pl.Int32)).alias("need")
    ),
    "the gains of eligible UEs are not one for each UE and subchannel": lambda frame: (
        frame.with_columns(pl.col("eligible_gain") * -1.0)
    ),
    "emptied has a UE that there is not": lambda frame: frame.with_columns(
        pl.lit([12], pl.List(pl.Int32)).alias("emptied")
    ),
}


@pytest.mark.parametrize("said", FORGERIES)
def test_rounds_that_cannot_be_of_the_run(said, history, tmp_path):
    file = tmp_path / "run.parquet"
    file.write_bytes(forged(history, history.frame))
    assert History.load(file).frame.equals(history.frame)
    file.write_bytes(forged(history, FORGERIES[said](history.frame)))
    with pytest.raises(ValueError, match="does not hold the rounds of a run: ") as error:
        History.load(file)
    assert str(error.value).startswith(f"{file}: ")
    assert str(error.value).endswith(said)


@pytest.mark.parametrize(
    "forge",
    [
        lambda frame: frame.drop("rate"),
        lambda frame: frame.with_columns(pl.lit(1).alias("more")),
        lambda frame: frame.with_columns(pl.col("owner").cast(pl.List(pl.String))),
        lambda frame: frame.head(2),
    ],
)
def test_columns_and_rows_that_no_run_has(forge, history, tmp_path):
    file = tmp_path / "run.parquet"
    file.write_bytes(forged(history, forge(history.frame)))
    with pytest.raises(ValueError, match=r"run.parquet: does not describe a run: its? "):
        History.load(file)


def test_a_number_that_no_array_holds(history, tmp_path):
    file = tmp_path / "run.parquet"
    file.write_bytes(forged(history, history.frame, label_counts=[[10**400]]))
    with pytest.raises(ValueError, match="run.parquet: does not describe a run: "):
        History.load(file)


def test_bytes_that_the_reader_cannot_take(history, tmp_path):
    """Every byte of the data pages in turn would take long: some, with the checksum made to fit."""
    file = tmp_path / "run.parquet"
    empty = bytearray(forged(history, history.frame))
    at = empty.rfind(b'"checksum": "') + len(b'"checksum": "')
    empty[at : at + 64] = NO_CHECKSUM.encode()
    refused = 0
    for place in range(4, 400, 11):
        damaged = bytearray(empty)
        damaged[place] ^= 0xFF
        file.write_bytes(add_checksum(bytes(damaged)))
        said = refusal(file)
        if said is not None:
            assert said.startswith(f"{file}: ")
            assert "\n" not in said
            refused += 1
    assert refused > 5


def refusal(file):
    try:
        History.load(file)
    except ValueError as error:
        return str(error)
    return None
