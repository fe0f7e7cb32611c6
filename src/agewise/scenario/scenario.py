"""One experiment, whatever the policy and the seed."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError

from agewise.scenario import toml
from agewise.scenario.errors import ScenarioError, explain, nearest
from agewise.scenario.models import Cell, Channel, Data, Learn, Run, Section, Timing


class Scenario(Section):
    """What is simulated: the cell, its channel, the data, the learning and the run."""

    cell: Cell
    channel: Channel
    data: Data
    learn: Learn
    run: Run
    timing: Timing | None = Field(default=None, description="how long a round takes the UEs")

    @classmethod
    def preset(cls, name: str) -> Self:
        """A named scenario of the package; `presets` lists them."""
        if name not in presets():
            raise ScenarioError(f"there is no preset {name!r}; {nearest(name, presets())}")
        text = _preset_file(name).read_text(encoding="utf-8")
        return cls._read(toml.parse(text, f"preset {name}"), f"preset {name}")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """The scenario in a TOML file; `ScenarioError` names the file and the key at fault."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{path}: cannot be read: {error}") from error
        return cls._read(toml.parse(text, str(path)), str(path))

    def with_(self, **changes: Any) -> Self:
        """A copy with other values, by dotted names: ``**{"learn.local_steps": 20}``.

        ``None`` takes an optional value away.
        """
        values = self.resolved()
        for name, value in changes.items():
            _set(values, name, value)
        return self._read(values, "")

    def resolved(self) -> dict[str, Any]:
        """Every value that is set, as plain data."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_toml(self) -> str:
        """A complete file with every field explained, which `load` reads back."""
        return toml.write(self)

    @classmethod
    def _read(cls, values: Mapping[str, Any], source: str) -> Self:
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ScenarioError(explain(error, cls, source)) from None


def presets() -> list[str]:
    """The names of the package's scenarios."""
    folder = files("agewise.scenario").joinpath("presets")
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir())


def summary(name: str) -> str:
    """The first line of the preset's file, which says what it is."""
    text: str = _preset_file(name).read_text(encoding="utf-8")
    return text.split("\n")[0].lstrip("# ")


def _preset_file(name: str) -> Any:
    return files("agewise.scenario").joinpath("presets", f"{name}.toml")


def _set(values: dict[str, Any], name: str, value: Any) -> None:
    """Change one value by its dotted name, which must be one of the models'."""
    *path, key = name.split(".")
    section: type[BaseModel] | None = Scenario
    for step in (*path, key):
        fields = section.model_fields if section else {}
        if step not in fields:
            raise ScenarioError(f"there is no {name}; {nearest(step, fields)}")
        section = toml.section_of(fields[step])
    for step in path:
        values = values.setdefault(step, {})
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
