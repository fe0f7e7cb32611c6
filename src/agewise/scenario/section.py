"""What sections of a scenario are made of, and how unions of kinds are found in them."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo

#: The largest whole number of a field: indices in the kernels have 32 bits.
MOST = 2**31 - 1
#: The largest decibels: more is no radio, and products of ratios must stay finite numbers.
MOST_DB = 300.0
#: The largest of other numbers, whose products with each other stay finite.
LARGE = 1e9
#: Steps of a search, some thirty years of them.
MOST_STEPS = 10**15
#: Where the path of a section starts if it is relative. A scenario that was read has paths that
#: start at the working folder, or absolute ones: the field says nothing more then, and is not kept.
RelativeTo = Annotated[
    Literal["working-folder", "scenario-file"],
    Field(
        description="where a relative path starts: this folder, or that of the scenario's TOML "
        "file",
        exclude=True,
    ),
]


class Section(BaseModel):
    """A part of a scenario: frozen, and strict about what it holds.

    A section that comes in kinds is a union of sections with a field ``kind``, so that a field
    exists only where it means something. Units are in the names (``_m``, ``_db``, ``_hz``, ``_s``).
    Nothing that is a scientific choice has a default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Options(Section):
    """Settings by names that are not ours; whoever they are for checks them."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, bool | int | float | str]

    def values(self) -> dict[str, bool | int | float | str]:
        """The settings by name."""
        return dict(self.__pydantic_extra__)


def _kind_by_name(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value


#: Lets a kind without further fields be written by its name alone: ``fading = "rayleigh"``.
ByName = BeforeValidator(_kind_by_name)


def sections_of(field: FieldInfo) -> list[type[Section]]:
    """The sections that a field may hold: one for each kind; none for a plain value."""
    return list(_sections_in(field.annotation))


def _sections_in(annotation: object) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)


def kind_of(section: type[Section]) -> str | None:
    """The name of this kind, or ``None`` for a section that does not come in kinds."""
    field = section.model_fields.get("kind")
    return None if field is None else str(get_args(field.annotation)[0])
