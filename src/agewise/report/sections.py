"""Parts of the page that depend on the result. Every text is escaped here."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from agewise.experiment import Folder
from agewise.report.squares import Squares, say

if TYPE_CHECKING:
    from agewise.experiment import Result


def choice(shown: Sequence[Mapping[str, Any]], most: int) -> str:
    """A select box for the settings of a sweep; nothing if there is only one."""
    if len(shown) < 2:
        return ""
    options = "".join(
        f'<option value="{place}">{escape(say(variation))}</option>'
        for place, variation in enumerate(shown[:most])
    )
    rest = len(shown) - most
    note = (
        f" <small>The other {rest} are in the tables and the map only.</small>" if rest > 0 else ""
    )
    return f'<p><label>Setting <select id="variation">{options}</select></label>{note}</p>'


def maps(drawn: Squares | None) -> str:
    """The place of the maps of a sweep."""
    if drawn is None:
        return ""
    shown = "".join(
        f'<figure class="card"><figcaption><h3>{escape(name)} over {escape(drawn.baseline)}</h3>'
        f'</figcaption><div class="chart map" data-map="{layer}" role="img" '
        f'data-rows="{len(drawn.rows)}" '
        f'aria-label="Map of gains of {escape(name)} in percentage points"></div></figure>'
        for layer, name in enumerate(drawn.policies)
    )
    return (
        "<section aria-labelledby='map'><h2 id='map'>Where which policy wins</h2><p>Gain in test "
        "accuracy (mean over the rounds, percentage points); blue wins, red loses. Stars say how "
        "sure it is, corrected for all squares: * p &lt; 0.05, ** p &lt; 0.01, *** p &lt; 0.001; "
        f"without a star it is a tie.</p><div class='grid maps'>{shown}</div></section>"
    )


def idea(result: "Result") -> str:
    """What ABS and MaxPack do, where both are there to be watched."""
    names = [policy.name for policy in result.policies]
    if "age-based" not in names or "max-pack" not in names:
        return ""
    return (
        "<b>MaxPack</b> takes whoever needs the fewest subchannels: it fits in the most phones, "
        "but hears the same near ones again and again while the rim goes stale. <b>ABS</b> weighs "
        "how stale a phone is against the subchannels it needs, so that nobody is forgotten."
    )


def origin(result: "Result") -> str:
    """The command, versions, seeds and policies, each to copy."""
    described = Folder(result.path).description()
    versions = {
        "agewise": described.version, "Python": described.python, **described.packages
    }  # fmt: skip
    facts = {
        "Command": described.command or "(from Python)",
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "Seeds": ", ".join(map(str, result.seeds)),
        "Policies": "; ".join(map(str, result.policies)),
    }
    return "".join(
        f"<dt>{name}</dt><dd><code>{escape(str(value))}</code> "
        f'<button type="button" class="copy" aria-label="Copy: {name}">Copy</button></dd>'
        for name, value in facts.items()
    )
