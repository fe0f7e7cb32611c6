"""What-if: a recorded federation again, under other policies."""

from pathlib import Path

from agewise.experiment.description import FolderError
from agewise.experiment.folder import Folder
from agewise.radio import TraceChannel
from agewise.scenario import Scenario


def replay_scenario(folder: Path | str, learning: Scenario | None = None) -> Scenario:
    """The scenario that replays the links in a results folder of a recorded federation.

    What is learned is as the folder says, or as in the scenario ``learning``: samples that stayed
    on the clients of a live federation cannot be simulated.
    """
    path = Path(folder)
    recorded = Folder(path).description().scenario
    channel = recorded.channel
    if not isinstance(channel, TraceChannel):
        raise FolderError(f"{path}: its links were not recorded but modelled: no trace to replay")
    beside = path.resolve() / Path(channel.path).name
    if beside.exists():  # the folder may have been moved
        channel = channel.model_copy(update={"path": str(beside)})
    base = recorded if learning is None else learning
    return base.with_(
        **{
            "channel": channel.model_dump(),
            "threshold": recorded.threshold.model_dump(),
            "timing": recorded.timing.model_dump(),
            "cell.ues": recorded.cell.ues,
            "cell.subchannels": recorded.cell.subchannels,
            "run.rounds": recorded.run.rounds,
        }
    )
