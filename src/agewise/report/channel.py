"""The radio on the page: the picture of the channel that a results folder holds."""

import base64
from pathlib import Path
from typing import Final

#: The picture's file in a results folder.
CHANNEL: Final = "channel.png"
_SIGNATURE = b"\x89PNG\r\n"
_ALT = (
    "The channel of the first seed in six panels: mean SNR in the cell and over the UEs, a block, "
    "correlation over time and over frequency, and how many subchannels UEs need"
)


def channel_section(folder: Path) -> str:
    """A part of the page; nothing where the folder has no picture."""
    try:
        picture = (folder / CHANNEL).read_bytes()
    except OSError:
        return ""
    if not picture.startswith(_SIGNATURE):
        return ""
    data = base64.b64encode(picture).decode()
    return (
        '<h3 class="part">The radio behind it</h3><p class="note">What the channel of the first '
        "seed is like, whatever is scheduled (<code>agewise channel</code> draws it for any "
        f'scenario).</p><img class="paper" src="data:image/png;base64,{data}" alt="{_ALT}">'
    )
