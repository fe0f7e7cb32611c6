"""Small pictures and lists of facts as HTML, by which objects show themselves in notebooks."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: After Okabe and Ito; seven policies are told apart, more share colours.
_COLOURS = ("#0072b2", "#d55e00", "#00875f", "#c4558f", "#2f93c8", "#b07800", "#707780")
_WIDTH, _HEIGHT = 360, 120


def facts(title: str, values: Mapping[str, object], picture: str = "") -> str:
    """A title, what there is to say in two columns, and a picture."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in values.items()
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{picture}</div>"


def lines(curves: Mapping[str, ArrayLike], label: str) -> str:
    """Curves over rounds, each named in its colour; what is not known is left out."""
    arrays = {name: np.asarray(each, np.float64) for name, each in curves.items()}
    known = [each[~np.isnan(each)] for each in arrays.values()]
    values = np.concatenate([*known, np.zeros(0)])
    if not values.size:
        return ""
    low, high = float(values.min()), float(values.max())
    span, longest = max(high - low, 1e-12), max(each.size for each in arrays.values())
    drawn, names = [], []
    for place, (name, each) in enumerate(arrays.items()):
        at = np.flatnonzero(~np.isnan(each))
        x = 40 + (_WIDTH - 44) * at / max(longest - 1, 1)
        y = 6 + (_HEIGHT - 12) * (1 - (each[at] - low) / span)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        colour = _COLOURS[place % len(_COLOURS)]
        drawn.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        names.append(f'<span style="color:{colour}">&#9644; {escape(name)}</span>')
    ends = "".join(
        f'<text x="36" y="{y}" text-anchor="end" font-size="10" fill="currentColor">{value:.3g}'
        "</text>"
        for y, value in ((12, high), (_HEIGHT - 4, low))
    )
    return _svg(_WIDTH, _HEIGHT, label, "".join([ends, *drawn])) + f"<div>{' '.join(names)}</div>"


def dots(positions_m: NDArray[np.floating], label: str) -> str:
    """UEs around the access point."""
    reach = float(np.abs(positions_m).max(initial=1.0)) * 1.05
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{-y:.1f}" r="{reach / 45:.1f}"/>' for x, y in positions_m
    )
    size = reach / 18
    middle = f'<path d="M0 {-size:.1f}L{size:.1f} {size:.1f}H{-size:.1f}z" fill="currentColor"/>'
    box = f"{-reach:.0f} {-reach:.0f} {2 * reach:.0f} {2 * reach:.0f}"
    return _svg(160, 160, label, f'<g fill="{_COLOURS[0]}">{circles}</g>{middle}', box)


def strip(owner: Sequence[int], label: str) -> str:
    """Subchannels side by side with the number of their owner, hollow without one."""
    ues = {ue: place for place, ue in enumerate(dict.fromkeys(ue for ue in owner if ue >= 0))}
    boxes = []
    for place, ue in enumerate(owner):
        fill = "none" if ue < 0 else _COLOURS[ues[ue] % len(_COLOURS)]
        text = "" if ue < 0 else str(ue)
        boxes.append(
            f'<rect x="{24 * place + 1}" y="1" width="22" height="22" fill="{fill}" '
            f'stroke="currentColor" stroke-width="0.5"/><text x="{24 * place + 12}" y="16" '
            f'text-anchor="middle" font-size="10" fill="white">{text}</text>'
        )
    return _svg(24 * len(owner), 24, label, "".join(boxes))


def _svg(width: int, height: int, label: str, inside: str, box: str = "") -> str:
    return (
        f'<svg width="{width}" height="{height}" viewBox="{box or f"0 0 {width} {height}"}" '
        f'role="img" aria-label="{escape(label)}" style="max-width:100%">{inside}</svg>'
    )
