"""Fashion-MNIST, CIFAR-10 and FEMNIST from small files in the formats of their authors."""

import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from agewise.data import ByWriter, Data, Dataset, Pair, Parity, Samples
from agewise.files import fingerprint
from agewise.random import Streams
from tests.samples import idx_bytes, read_cifar_10, read_fashion_mnist, read_femnist, with_labels
from tests.scenarios import tiny

# ------------------------------------------------------------------------------ Fashion-MNIST


def test_fashion_mnist_has_its_names_and_shape(tmp_path):
    labels = np.arange(20) % 10
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((20, 28, 28))))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    found = read_fashion_mnist(tmp_path)
    assert found.names[9] == "ankle boot"
    assert found.shape == (28, 28)
    source = _data({"kind": "fashion-mnist", "path": str(tmp_path)})
    assert source.load().name == "fashion-mnist"
    assert list(source.dataset.files()) == source.dataset.file_names()


def test_fashion_mnist_says_where_it_comes_from(tmp_path):
    with pytest.raises(ValueError, match="Debian's package dataset-fashion-mnist"):
        read_fashion_mnist(tmp_path / "nowhere")
    assert _data("fashion-mnist").dataset.path == "/usr/share/datasets/fashion-mnist"


# ----------------------------------------------------------------------------------- CIFAR-10
def python_2_batch(rows, labels):
    """A batch as Python 2 and its NumPy wrote it: byte strings, and names of that time."""

    def text(raw):
        return b"U" + bytes([len(raw)]) + raw

    raw = rows.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
        b"(K\x01(K" + bytes([len(rows)]) + b"M\x00\x0ctcnumpy\ndtype\n(U\x02u1K\x00K\x01tR"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + len(raw).to_bytes(4, "little") + raw + b"tb"
    )  # fmt: skip
    numbers = b"(l" + b"".join(b"K" + bytes([label]) + b"a" for label in labels)
    pairs = text(b"data") + array + text(b"labels") + numbers
    return b"\x80\x02}(" + pairs + text(b"batch_label") + text(b"one") + b"u."


def python_3_batch(rows, labels, protocol=4):
    return pickle.dumps({"data": rows, "labels": [int(x) for x in labels]}, protocol)


@pytest.fixture
def cifar(tmp_path):
    rng = np.random.default_rng(0)
    images = {}
    for number, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        rows, labels = rng.integers(0, 256, (4, 3072), np.uint8), rng.integers(0, 10, 4)
        make = python_3_batch if number == 3 else python_2_batch
        (tmp_path / name).write_bytes(make(rows, labels))
        images[name] = rows, labels
    return tmp_path, images


def test_cifar_10_is_read_as_published(cifar):
    folder, images = cifar
    found = read_cifar_10(folder)
    assert found.shape == (3, 32, 32)
    assert found.names[0] == "airplane"
    batches = [images[f"data_batch_{n}"] for n in range(1, 6)]
    np.testing.assert_array_equal(found.train.features, np.concatenate([x for x, _ in batches]))
    np.testing.assert_array_equal(found.train.labels, np.concatenate([y for _, y in batches]))
    np.testing.assert_array_equal(found.test.features, images["test_batch"][0])
    source = _data({"kind": "cifar-10", "path": str(folder)})
    assert list(source.dataset.files()) == source.dataset.file_names()
    assert len(source.load().train) == 20


@pytest.mark.parametrize("protocol", range(6))
def test_batches_that_numpy_of_today_writes_are_read_too(cifar, protocol):
    folder, images = cifar
    rows, labels = images["test_batch"]
    (folder / "test_batch").write_bytes(python_3_batch(rows, labels, protocol))
    np.testing.assert_array_equal(read_cifar_10(folder).test.features, rows)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


@pytest.mark.parametrize("protocol", range(5))
def test_nothing_of_a_file_is_called(cifar, protocol, monkeypatch):
    folder, _ = cifar
    monkeypatch.chdir(folder)
    (folder / "test_batch").write_bytes(pickle.dumps({"data": Harmful()}, protocol))
    with pytest.raises(ValueError, match=r"test_batch: .*: it asks for \w+.mkdir"):
        read_cifar_10(folder)
    assert not (folder / "harm").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Ran out of input"),
        (b"\x80\x02}", "truncated|ran out|Ran out|EOF"),
        (pickle.dumps([1], 2), "it holds no dictionary"),
        (pickle.dumps({"data": 1, "labels": []}, 2), "no array data and list labels"),
        (python_2_batch(np.zeros((2, 3072), np.uint8), [0]), "1 labels for 2 images"),
        (python_2_batch(np.zeros((2, 3072), np.uint8), [0, 10]), "not numbers from 0 to 9"),
        (python_2_batch(np.zeros((2, 3000), np.uint8), [0, 1]), "not the bytes of shape"),
        (python_3_batch(np.zeros((2, 300), np.uint8), [0, 1]), "not \\(number, 3072\\)"),
        (python_3_batch(np.zeros((2, 3072), np.float32), [0, 1]), "does not hold bytes"),
        (python_3_batch(np.array([Ellipsis]), [0]), "Ellipsis|hold bytes"),
    ],
)
def test_damaged_batches_are_one_sentence(cifar, content, message):
    folder, _ = cifar
    (folder / "test_batch").write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_cifar_10(folder)
    assert str(error.value).startswith(str(folder / "test_batch"))


def test_a_missing_batch_is_named(cifar):
    folder, _ = cifar
    (folder / "data_batch_4").unlink()
    with pytest.raises(ValueError, match="there is no data_batch_4; .* cifar-10-batches-py"):
        read_cifar_10(folder)


# ------------------------------------------------------------------------------------ FEMNIST
def leaf(writers):
    data = {
        name: {"x": [[0.25] * 784 for _ in labels], "y": labels} for name, labels in writers.items()
    }
    counts = [len(labels) for labels in writers.values()]
    return json.dumps({"users": list(writers), "num_samples": counts, "user_data": data})


@pytest.fixture
def femnist(tmp_path):
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
    first = {"f0002_11": [3, 61], "f0000_14": [10, 10, 36]}
    (tmp_path / "train" / "all_data_0_train_9.json").write_text(leaf(first))
    (tmp_path / "train" / "all_data_1_train_9.json").write_text(leaf({"f0001_41": [0], "none": []}))
    (tmp_path / "test" / "all_data_0_test_9.json").write_text(leaf({"f0000_14": [10]}))
    return tmp_path


def test_femnist_is_read_by_writer(femnist):
    found = read_femnist(femnist)
    assert found.names[10] == "A"
    assert found.names[36] == "a"
    assert found.class_count == 62
    assert found.shape == (28, 28)
    np.testing.assert_array_equal(found.train.labels, [10, 10, 36, 0, 3, 61])
    np.testing.assert_array_equal(found.writers, [0, 0, 0, 1, 2, 2])
    assert found.train.values()[0, 0] == 0.25
    np.testing.assert_array_equal(Pair(classes=(10, 0)).relabel(found).writers, [0, 0, 1])
    np.testing.assert_array_equal(Parity().relabel(found).writers, found.writers)


def test_every_json_file_of_femnist_counts_for_the_sources(femnist):
    source = _data({"kind": "femnist", "path": str(femnist)})
    files = source.dataset.files()
    assert list(files) == source.dataset.file_names()
    before = [fingerprint(file) for file in files.values()]
    (femnist / "train" / "more.json").write_text(leaf({"z": [1]}))
    after = [fingerprint(file) for file in files.values()]
    assert before[0] != after[0]
    assert before[1] == after[1]
    assert len(source.load().train) == 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Expecting"),
        ("[]", "not a readable file of LEAF: it has no user_data"),
        (leaf({"f0000_14": [1]}), "the writer f0000_14 is in another file too"),
        (leaf({"w": [1.5]}), "the writer w needs 784 pixels"),
        (json.dumps({"user_data": {"w": {"x": [[1, 2]], "y": [1]}}}), r"shape \(1, 2\)"),
        (leaf({"w": [62]}), "outside the classes 0 to 61"),
        (json.dumps({"user_data": {"w": 3}}), "the writer w has no samples x and labels y"),
    ],
)
def test_damaged_leaf_files_are_one_sentence(femnist, content, message):
    (femnist / "train" / "more.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_femnist(femnist)


def test_a_folder_without_leaf_files(tmp_path):
    with pytest.raises(ValueError, match="no samples in JSON files"):
        read_femnist(tmp_path)


# ------------------------------------------------------------------------ partition by writer
BY_WRITER = {"kind": "by-writer", "writers_per_ue": 1}


def by_writer(writers, ues, each, rng):
    data = replace(with_labels(np.zeros(writers.size, np.int64)), writers=writers)
    return ByWriter(writers_per_ue=each).divide(data, np.full(ues, 1 / ues), rng)


def test_samples_stay_with_their_writers():
    writers = np.repeat(np.arange(6), [3, 1, 4, 1, 5, 9])[np.random.default_rng(2).permutation(23)]
    parts = by_writer(writers, 3, 2, np.random.default_rng(0))
    seen = [set(writers[parts.samples_of(ue)].tolist()) for ue in range(3)]
    assert [len(own) for own in seen] == [2, 2, 2]
    assert set.union(*seen) == set(range(6))
    assert sorted(parts.order.tolist()) == list(range(23))
    few = by_writer(writers, 2, 1, np.random.default_rng(0))
    for ue in range(2):
        own = np.unique(writers[few.samples_of(ue)])
        assert own.size == 1
        assert few.sizes[ue] == (writers == own[0]).sum()
    other = by_writer(writers, 2, 1, np.random.default_rng(1))
    assert not np.array_equal(few.order, other.order)
    with pytest.raises(ValueError, match=r"4 UEs with 2 writer.* need 8 writers.* have 6"):
        by_writer(writers, 4, 2, np.random.default_rng(0))


def test_a_scenario_divides_by_writer(femnist):
    values = {
        "dataset": {"kind": "femnist", "path": str(femnist)},
        "task": "all",
        "partition": BY_WRITER,
    }
    source = Data.model_validate(values)
    data, devices = source.load(), tiny(**{"cell.ues": 3}).device_table(Streams(0))
    parts = source.divide(data, devices, Streams(0))
    assert sorted(parts.sizes.tolist()) == [1, 2, 3]
    with pytest.raises(ValueError, match="have no writers"):
        source.divide(replace(data, writers=None), devices, Streams(0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data.partition": {"kind": "by-writer", "writers_per_ue": 1}},
            "set data.dataset to femnist",
        ),
        (
            {
                "data.dataset": {"kind": "femnist", "path": "x"},
                "data.partition": BY_WRITER,
                "devices.samples_sigma": 1.0,
            },
            r"devices\.samples.* does not go with data\.partition = by-writer",
        ),
    ],
)
def test_sections_that_do_not_fit_together(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny(**changes)


def _data(dataset):
    values = {"dataset": dataset, "task": "all", "partition": "iid"}
    return Data.model_validate(values)


def test_data_sets_without_writers_have_none():
    ones = Samples(np.ones((2, 3), np.float32), np.array([0, 1]))
    assert Dataset("made", ones, ones, ("a", "b")).writers is None
