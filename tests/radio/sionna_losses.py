"""What Sionna says of path losses and lines of sight: makes the record that tests compare with.

``python -m tests.radio.sionna_losses`` writes ``sionna.json``, where Sionna is installed
(``pip install sionna``); the tests need only the record.
"""

import json
from pathlib import Path

import numpy as np

from agewise.radio.path_loss import IndoorFactory, IndoorHotspot, UrbanMacro, UrbanMicro

RECORD = Path(__file__).with_name("sionna.json")
CARRIERS_GHZ = (0.7, 3.5, 28.0)
#: Each model at the heights of TR 38.901, and the distances at which it is asked.
HALL = {"ue_height_m": 1.5, "clutter_height_m": 6.0}
SPARSE = HALL | {"clutter_density": 0.2, "clutter_size_m": 10.0}
DENSE = HALL | {"clutter_density": 0.6, "clutter_size_m": 2.0}
PLACES = {
    "uma": (UrbanMacro, {"access_point_height_m": 25.0, "ue_height_m": 1.5}, (10.0, 5000.0)),
    "umi": (UrbanMicro, {"access_point_height_m": 10.0, "ue_height_m": 1.5}, (10.0, 5000.0)),
    "inh-open": (
        IndoorHotspot,
        {"office": "open", "access_point_height_m": 3.0, "ue_height_m": 1.0},
        (1.0, 150.0),
    ),
    "inh-mixed": (
        IndoorHotspot,
        {"office": "mixed", "access_point_height_m": 3.0, "ue_height_m": 1.0},
        (1.0, 150.0),
    ),
    "inf-sl": (IndoorFactory, SPARSE | {"hall": "sl", "access_point_height_m": 1.5}, (1.0, 600.0)),
    "inf-dl": (IndoorFactory, DENSE | {"hall": "dl", "access_point_height_m": 1.5}, (1.0, 600.0)),
    "inf-sh": (IndoorFactory, SPARSE | {"hall": "sh", "access_point_height_m": 8.0}, (1.0, 600.0)),
    "inf-dh": (IndoorFactory, DENSE | {"hall": "dh", "access_point_height_m": 8.0}, (1.0, 600.0)),
}


def model(place, carrier_ghz):
    """The model of the package at this place."""
    kind, settings, _ = PLACES[place]
    return kind(carrier_ghz=carrier_ghz, **settings)


def ground_m(place):
    """Distances along the ground."""
    return np.geomspace(*PLACES[place][2], 50)


def scenario(place, carrier_ghz):
    """The scenario of Sionna at this place."""
    from sionna.phy.channel import tr38901

    carrier, settings = carrier_ghz * 1e9, PLACES[place][1]
    array = tr38901.PanelArray(1, 1, "single", "V", "omni", carrier, precision="double")
    same = {"direction": "uplink", "enable_shadow_fading": False, "precision": "double"}
    if place in ("uma", "umi"):
        made = {"uma": tr38901.UMaScenario, "umi": tr38901.UMiScenario}[place]
        return made(carrier, "low", array, array, **same)
    if place.startswith("inh"):
        return tr38901.InHScenario(carrier, settings["office"], array, array, **same)
    clutter = {
        name.removesuffix("_m"): x for name, x in settings.items() if name.startswith("clutter")
    }
    return tr38901.InFScenario(carrier, settings["hall"], array, array, **clutter, **same)


def theirs(place, carrier_ghz):
    """``[loss in sight, loss out of sight, probability of sight]`` at each distance."""
    import torch

    away, heights = ground_m(place), PLACES[place][1]
    ues = np.stack([away, 0 * away, np.full(away.size, heights["ue_height_m"])], axis=1)
    base = [[[0.0, 0.0, heights["access_point_height_m"]]]]
    asked, still = scenario(place, carrier_ghz), np.zeros((1, away.size, 3))
    inside = torch.full((1, away.size), place.startswith("in"))
    found = []
    for seen in (True, False):
        asked.set_topology(
            torch.tensor(ues[np.newaxis]), torch.tensor(base), torch.tensor(still),
            torch.zeros(1, 1, 3, dtype=torch.float64), torch.tensor(still),
            inside, seen,
        )  # fmt: skip
        found.append(asked.basic_pathloss.numpy().ravel().copy())
    return [*found, asked.los_probability.numpy().ravel()]


def main():
    """Write the record."""
    record = {
        place: {
            str(ghz): np.round(theirs(place, ghz), 12).tolist() for ghz in CARRIERS_GHZ
        }
        for place in PLACES
    }  # fmt: skip
    RECORD.write_text(json.dumps(record) + "\n", "utf-8")


if __name__ == "__main__":
    main()
