"""The target of a federation's folder: ``python -m tests.fuzz --targets-from`` this module."""

import io
import json
import logging
import shutil

import numpy as np
from flwr.serverapp.strategy import FedAdam

from agewise.experiment import Result
from agewise.flower import FederationError, Slots
from agewise.flower.state import _CHECKSUM, _checksum
from tests.experiment.watch import files
from tests.fuzz.folders import SECRET, clear, place, swap
from tests.fuzz.mutate import mutate_array, mutate_bytes, mutate_tree
from tests.fuzz.oracle import Case, CleanExit, Target, require
from tests.scenarios import tiny
from tests_extra.flower.federations import Problem


class States(Target):
    """Folders of live federations: bytes, arrays, JSON, files swapped, missing, and no files."""

    name = "state"

    def __init__(self, room):
        super().__init__(room)
        logging.getLogger("flwr").setLevel(logging.CRITICAL)
        self.problem = Problem(tiny(**{"learn.local_steps": 2}))
        self.whole = room / "whole"
        self._train(self.whole, 2)
        self.model = self._train(room / "further", 3)
        self.names = sorted(files(self.whole))

    def _train(self, folder, rounds):
        inner = FedAdam(fraction_evaluate=0.0)
        scheduled = self.problem.scheduled(
            "age-based", Slots(3), folder=folder, inner=inner, shadow=["random"]
        )
        return self.problem.start(scheduled, rounds).arrays["model"].data

    def make(self, chance):
        changes = list(chance.changes())

        def attempt(folder):
            out, secret = folder / "out", folder / "secret"
            shutil.copytree(self.whole, out)
            secret.write_bytes(SECRET)
            forged = [self._damage(out, rng, secret) for rng in changes]
            try:
                model = self._train(out, 3)
                require(any(forged) or model == self.model, "another model after going on")
                Result.open(out)
            except FederationError as error:
                raise CleanExit(str(error)) from error
            finally:
                require(secret.read_bytes() == SECRET, "a file outside of the folder was changed")

        return Case(attempt, ("out", "federation"), shown="damage done by the changes of this case")

    def _damage(self, out, rng, secret):
        """One act of damage; whether it was forged, so that checksums hold."""
        file = out / rng.choice((*self.names, "state.npz", "state.npz", "rounds/000001.npz"))
        plain = file.is_file() and not file.is_symlink() and file.stat().st_size < 2**24
        match rng.randrange(8):
            case 0 | 1 if plain:
                file.write_bytes(mutate_bytes(file.read_bytes(), rng))
            case 2 | 3 | 4 if plain and file.suffix == ".npz":
                file.write_bytes(self._forged(file.read_bytes(), rng))
                return True
            case 5:
                swap(file, out / rng.choice(self.names))
                return True  # a round in the place of another is whole
            case 6:
                clear(file)
            case 7:
                clear(file)
                place(file, rng, secret)
        return False

    def _forged(self, content, rng):
        """Other arrays of ours, or other JSON among them, in an archive that is whole."""
        try:
            with np.load(io.BytesIO(content)) as archive:
                arrays = dict(archive)
            # Models, and what strategies of Flower keep, are for these to judge.
            ours = [name for name in arrays if not name.startswith(("model/", "inner/"))]
            name = rng.choice(sorted(ours))
            if name == "text":
                tree = mutate_tree(json.loads(arrays[name].tobytes()), rng)
                arrays[name] = np.frombuffer(json.dumps(tree).encode(), np.uint8)
            elif rng.random() < 0.2:
                arrays[rng.choice(("x", "inner/0.aggregate_train.single.", name + "x"))] = np.ones(
                    3
                )
            else:
                arrays[name] = mutate_array(arrays[name], rng, self.trap)
        except Exception:  # damaged before
            return content
        if arrays.pop(_CHECKSUM, None) is not None:
            arrays[_CHECKSUM] = _checksum(arrays)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()


TARGETS = (States,)
