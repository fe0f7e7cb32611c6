"""Which format a file has, and its trace for one run."""

import functools
from pathlib import Path

from agewise.archives import array_names, require_file
from agewise.files import stamp
from agewise.radio.traces.own import ENDINGS, read_own
from agewise.radio.traces.responses import CHANNEL_NAMES, read_deepmimo, read_sionna
from agewise.radio.traces.series import read_drive_test, read_ns3_fading, read_ns3_sinr
from agewise.radio.traces.trace import Content, Size, Trace, require_size
from agewise.random import Streams
from agewise.scenario import (
    AutoFormat,
    DeepMimoFormat,
    DriveTestFormat,
    GainsFormat,
    Ns3FadingFormat,
    Ns3SinrFormat,
    SionnaFormat,
    TraceChannel,
)

_Format = (
    AutoFormat
    | GainsFormat
    | SionnaFormat
    | DeepMimoFormat
    | Ns3FadingFormat
    | Ns3SinrFormat
    | DriveTestFormat
)
#: Endings of files whose content needs more to be said than the file does.
_NAMED = {
    ".fad": "ns3-fading",
    ".txt": "ns3-fading or ns3-sinr",
    ".tsv": "ns3-sinr",
    ".csv": "drive-test",
}


def open_trace(settings: TraceChannel, size: Size, streams: Streams) -> Trace:
    """The trace of one run; ``ValueError`` says what is wrong with the file or the sizes."""
    path = Path(settings.path)
    trace = _read(path, _state(path), settings.format, size).drawn(size, streams)
    require_size(path, trace, size)
    return trace


def open_gains(path: Path | str) -> Trace:
    """The trace in a file of our own format, as large as it is."""
    file = Path(path)
    return _read_own(file, _state(file))


def _state(path: Path) -> tuple[int, ...]:
    try:
        return stamp(path)
    except OSError as error:
        where = Path(path).absolute()
        raise ValueError(f"{where}: the trace cannot be read: {error.strerror}") from error


@functools.lru_cache(maxsize=2)
def _read_own(path: Path, _stamp: tuple[int, ...]) -> Trace:
    """A file of gains, checked once as long as it stays what it is."""
    return read_own(path)


def _read(path: Path, state: tuple[int, ...], settings: _Format, size: Size) -> Content:
    chosen = guessed(path) if isinstance(settings, AutoFormat) else settings
    if isinstance(chosen, GainsFormat):
        return _read_own(path, state)
    return _read_other(path, state, chosen, size)


@functools.lru_cache(maxsize=2)
def _read_other(path: Path, _stamp: tuple[int, ...], settings: _Format, size: Size) -> Content:
    """A file of others, read once for runs of this size as long as it stays what it is."""
    match settings:
        case SionnaFormat():
            return read_sionna(path, settings, size)
        case DeepMimoFormat():
            return read_deepmimo(path, settings, size)
        case Ns3FadingFormat():
            return read_ns3_fading(path, settings, size)
        case Ns3SinrFormat():
            return read_ns3_sinr(path, settings, size)
        case DriveTestFormat():
            return read_drive_test(path, settings, size)
    raise AssertionError(settings)


def guessed(path: Path) -> GainsFormat | SionnaFormat | DeepMimoFormat:
    """The format that the ending and the names inside leave no doubt about."""
    require_file(path)
    if path.suffix == ".mat":
        return DeepMimoFormat()
    if path.suffix == ".npz":
        names = set(array_names(path))
        if "gains" not in names and {"a", "tau"} <= names:
            return SionnaFormat()
        if "gains" not in names and names & set(CHANNEL_NAMES):
            return DeepMimoFormat()
        return GainsFormat()
    if path.suffix in ENDINGS:
        return GainsFormat()
    if path.suffix in _NAMED:
        kind = _NAMED[path.suffix]
        raise ValueError(
            f"{path}: a {path.suffix} file does not say all that is needed: set channel.format to "
            f"kind {kind} with its fields"
        )
    raise ValueError(
        f"{path}: a trace ends in {', '.join(ENDINGS)} or .mat; of another ending set "
        "channel.format to what it is"
    )
