"""Parts of a scenario: frozen, validated, documented sections with their own methods.

A family of parts (path loss, aggregation, ...) is a subclass of `Part` with a field ``kind`` and
the methods that all of its kinds have; a kind is a subclass of the family with its fields::

    class Compression(Part):
        kind: str = ""
        def payload_bits(self, length: int) -> float:
            raise self.lacks("payload_bits")

    class Sign(Compression):
        kind: Literal["sign"] = "sign"
        def payload_bits(self, length: int) -> float: ...

A section of a scenario holds one of them as ``Annotated[Compression, Kinds]``. Every family is
open: a kind may be ``my_file.py:MyClass``, a class of the user's, or an object of such a class.
Reading a scenario never runs code: a kind in a file is kept as an `Unloaded` part until somebody
who computes runs asks for it (``context={"load_code": True}``).
"""

import contextlib
import functools
import inspect
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, NoneType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

#: The largest whole number of a field: indices in the kernels have 32 bits.
MOST = 2**31 - 1
#: A field in decibels: more is no radio, and products of ratios must stay finite numbers.
Decibels = Annotated[float, Field(ge=-300.0, le=300.0)]
#: The largest of other numbers, whose products with each other stay finite.
LARGE = 1e9
#: Steps of a search, some thirty years of them.
MOST_STEPS = 10**15
#: Where the path of a part starts if it is relative. A scenario that was read has paths that
#: start at the working folder, or absolute ones: the field says nothing more then, and is not kept.
RelativeTo = Annotated[
    Literal["working-folder", "scenario-file"],
    Field(
        description="where a relative path starts: this folder, or that of the scenario's TOML "
        "file",
        exclude=True,
    ),
]

#: What a part makes for one run and is handed back later: each kind knows its own.
State = Any
#: Plain data of a section, as TOML and JSON have it.
Values = dict[str, Any]
#: A class of the user's: ``file.py:Class``, or the bare name of a class in a program.
_IN_FILE = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)$", re.DOTALL)
_CLASS_NAME = re.compile(r"[A-Z]\w*$")
_Base = TypeVar("_Base")
_SomePart = TypeVar("_SomePart", bound="Part")
#: The text of the file that a user's class was loaded from, as it was then.
_TEXTS: dict[type, str] = {}
#: Modules of the user's code have names that begin so, also where they were pickled by value.
_OWN = "_agewise_"


class CodeError(ValueError):
    """Code that the user named and that fails: the message names its file and line."""


class Part(BaseModel):
    """A section of a scenario: frozen, and strict about what it holds.

    Units are in the names of fields (``_m``, ``_db``, ``_hz``, ``_s``). Nothing that is a
    scientific choice has a default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    #: What stands below names of the user's own, in a section of such.
    named: ClassVar["type[Part] | None"] = None

    @model_validator(mode="before")
    @classmethod
    def _name_own_kind(cls, values: object) -> object:
        """Name the kind of a user's class, which need not declare one."""
        field = cls.model_fields.get("kind")
        if field is None or field.annotation is not str or not isinstance(values, Mapping):
            return values
        return {"kind": cls.__name__, **values}

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_other_types(cls, value: object, info: ValidationInfo) -> object:
        """Refuse a Boolean or a text for a number, and what is no Boolean for one."""
        types = _plain_types(cls, info.field_name or "")
        for each in value if isinstance(value, list | tuple) else (value,):
            wrong = isinstance(each, bool) != (bool in types) or isinstance(each, str)
            if types and wrong and each is not None:
                wanted = "true or false" if bool in types else "a number"
                raise PydanticCustomError("type", f"must be {wanted}")
        return value

    def files(self) -> dict[str, Path]:
        """Name the files that it reads, by the names of their sources (`agewise.provenance`)."""
        return {}

    def lacks(self, method: str) -> CodeError:
        """Say that this kind does not have a method that its family requires."""
        kind = getattr(self, "kind", "") or type(self).__name__
        if isinstance(self, Unloaded):
            return CodeError(f"{kind} is code that was not loaded: Scenario.loaded() loads it")
        return CodeError(f"{kind} has no method {method}, which every {_family(self)} needs")


@functools.cache
def _plain_types(part: type[Part], name: str) -> frozenset[object]:
    """Return the types of a field of numbers or Booleans; nothing for any other field."""
    inside = [part.model_fields[name].annotation]
    for each in inside:
        inside += get_args(each)
    if any(isinstance(each, str) for each in inside):  # words that it may have
        return frozenset()
    types = {each for each in inside if isinstance(each, type) and not get_args(each)} - {NoneType}
    return frozenset(types) if types <= {bool, int, float} else frozenset()


class Unloaded(Part):
    """Marks a part whose class is code that was not loaded: it keeps its kind and fields."""


class Options(Part):
    """Settings by names that are not ours; whoever they are for checks them."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, bool | int | float | str]

    def values(self) -> dict[str, bool | int | float | str]:
        """Return the settings by name."""
        return dict(self.__pydantic_extra__)


class _Kinds:
    """Finds the class of a part by its kind, among the subclasses of the annotated family."""

    def __get_pydantic_core_schema__(
        self, family: type[Part], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        choices = {kind: handler.generate_schema(each) for kind, each in kinds(family).items()}
        return core_schema.with_info_wrap_validator_function(
            functools.partial(_read, family),
            core_schema.tagged_union_schema(choices, discriminator="kind"),
            serialization=core_schema.plain_serializer_function_ser_schema(_dump, info_arg=True),
        )


#: Marks a field that holds one kind of a family: ``Annotated[PathLoss, Kinds]``. A kind without
#: further fields may be written by its name alone: ``fading = "rayleigh"``.
Kinds = _Kinds()


def _read(
    family: type[Part],
    value: object,
    known: core_schema.ValidatorFunctionWrapHandler,
    info: core_schema.ValidationInfo[Values | None],
) -> object:
    if isinstance(value, family):
        return value
    if isinstance(value, str):
        value = {"kind": value}
    match value:
        case {"kind": str(kind), **fields} if is_code(kind):
            found = _IN_FILE.match(kind)
        case _:
            return known(value)
    if found is None or not (info.context or {}).get("load_code"):
        return _unloaded(family).model_validate(value)
    chosen = load_class(found["file"], found["name"], family)
    if unknown := [key for key in fields if key not in chosen.model_fields]:
        takes = ", ".join(key for key in chosen.model_fields if key != "kind") or "no fields"
        raise ValueError(f"there is no {unknown[0]!r}: {kind} takes {takes}")
    return chosen.model_validate(value, context=info.context)


def _dump(value: Part, info: core_schema.SerializationInfo[object]) -> Values:
    """Return the values as plain data; of a user's class those that were given.

    So they are the same whether the class is loaded or not; its defaults are part of its source.
    """
    own = is_code(getattr(value, "kind", ""))
    return value.model_dump(mode=info.mode, exclude_none=info.exclude_none, exclude_unset=own)


@functools.cache
def _unloaded(family: type[Part]) -> type[Part]:
    """Make the class of the parts of this family whose code is not loaded."""

    class Named(family, Unloaded):  # type: ignore[misc, valid-type]
        model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)
        __pydantic_extra__: dict[str, Any]

    Named.__doc__ = "A class of your own."
    return Named


def _family(part: Part) -> str:
    """Name the family that a part belongs to, in words."""
    bases = [each for each in type(part).__mro__ if "kind" in vars(each).get("__annotations__", {})]
    words = re.findall("[A-Z][a-z0-9]*", bases[-1].__name__ if bases else "Part")
    return " ".join(words).lower()


def is_code(kind: str) -> bool:
    """Tell whether a kind names a class of the user's: ``file.py:Class``, or ``Class``."""
    return bool(_IN_FILE.match(kind) or _CLASS_NAME.match(kind))


def kinds(family: type[_SomePart]) -> dict[str, type[_SomePart]]:
    """Return the kinds of a family by name, in the order in which they are defined."""
    found: dict[str, type[_SomePart]] = {}
    for each in family.__subclasses__():
        name = kind_of(each)
        found |= ({name: each} if name else {}) | kinds(each)
    return found


def kind_of(part: type[Part]) -> str | None:
    """Return the name of a kind; ``None`` for a family, a user's class or a plain section."""
    field = part.model_fields.get("kind")
    names = get_args(field.annotation) if field is not None else ()
    return str(names[0]) if names else None


def parts_of(field: FieldInfo) -> list[type[Part]]:
    """Return the parts that a field may hold: one for each kind; none for a plain value."""
    return list(_parts_in(field.annotation))


def parts_below(section: type[Part], name: str) -> list[type[Part]]:
    """Return the parts that may stand at this name of a section."""
    field = section.model_fields.get(name)
    if field is None:
        return [] if section.named is None else [section.named]
    return parts_of(field)


def _parts_in(annotation: object) -> Iterator[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield from kinds(annotation).values() or [annotation]
    for inner in get_args(annotation):
        yield from _parts_in(inner)


def parts_inside(part: Part, name: str = "") -> Iterator[tuple[str, Part]]:
    """Yield a part and all parts inside of it, each with its dotted name."""
    yield name, part
    for key, inner in part:
        if isinstance(inner, Part):
            yield from parts_inside(inner, f"{name}.{key}".lstrip("."))


def values_of(part: Part) -> Values:
    """Return the values of a part as plain data.

    An object of a class that stands in no file cannot be made again: it stays as it is.
    """
    values: Values = {}
    own = is_code(getattr(part, "kind", ""))
    for key, value in part:  # fields, and those of code that is not loaded
        field = type(part).model_fields.get(key)
        left_out = own and key not in part.model_fields_set
        if value is None or left_out or (field is not None and field.exclude):
            continue
        object_only = isinstance(value, Part) and _CLASS_NAME.match(getattr(value, "kind", ""))
        plain = isinstance(value, Part) and (not object_only or isinstance(value, Unloaded))
        values[key] = values_of(value) if plain else value
    return values


def own_parts(part: Part) -> dict[str, type[Part]]:
    """Return the classes of the user's inside of a part by kind; `Unloaded` ones stand for some."""
    inside = [each for _, each in parts_inside(part)]
    return {kind: type(each) for each in inside if is_code(kind := getattr(each, "kind", ""))}


def load_class(file: str, name: str, base: type[_Base]) -> type[_Base]:
    """Load the class of this name, a subclass of ``base``, from a Python file.

    Without a name it is the only such class in the file. The class belongs to no importable
    module, so that pickling takes it along by value and it runs in other processes and on other
    machines. What it uses of its own file goes with it; what it imports must be installed there.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CodeError(f"{file}: the file cannot be read: {reason}") from error
    found = {
        key: each
        for key, each in _classes(str(path.resolve()), text).items()
        if issubclass(each, base) and not inspect.isabstract(each)
    }
    wanted = f"subclass of agewise's {base.__name__}"
    if not found:
        raise CodeError(f"{file}: there is no {wanted} in it")
    if not name and len(found) > 1:
        listed = " or ".join(f"{file}:{each}" for each in found)
        raise CodeError(f"{file}: there are several classes in it: write {listed}")
    name = name or next(iter(found))
    if name not in found:
        raise CodeError(f"{file}: there is no {wanted} called {name}, only {', '.join(found)}")
    return found[name]


@functools.lru_cache(maxsize=64)
def _classes(path: str, text: str) -> dict[str, type]:
    """Run a file and return the classes that it defines, by name."""
    module = ModuleType(f"{_OWN}{Path(path).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # dataclasses look there for what annotations mean
    try:
        exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102 - the user names the file
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        raise CodeError(f"{Path(path).name} cannot be run: {fault(error)}") from error
    finally:
        del sys.modules[module.__name__]
    found = {
        name: each
        for name, each in vars(module).items()
        if isinstance(each, type) and each.__module__ == module.__name__
    }
    _TEXTS.update(dict.fromkeys(found.values(), text))
    return found


def given(
    part: Part, method: str, values: NDArray[np.float64], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return what a method of a part gave, checked if the part is the user's own.

    `CodeError` names the kind unless there are finite numbers of this shape.
    """
    if type(part).__module__.startswith("agewise."):
        return values
    found = np.asarray(values, dtype=np.float64, order="C")
    kind = getattr(part, "kind", type(part).__name__)
    if found.shape != shape:
        raise CodeError(f"{kind}: {method} must give numbers of shape {shape}, not {found.shape}")
    if not np.isfinite(found).all():
        raise CodeError(f"{kind}: {method} must give finite numbers, not {found.min()}")
    return found


def loaded_text(code: type) -> str | None:
    """Return the text of the file that a class was loaded from, as it was then."""
    return _TEXTS.get(code)


def fault(error: BaseException) -> str:
    """Say what an error of a user's code was, and on which line of which of its files."""
    said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".rstrip(": ")
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"line {error.lineno}: {said}"
    own = _own_frames(error)
    if isinstance(error, SystemExit):  # whoever called it, for nothing of ours does
        own = own or list(traceback.extract_tb(error.__traceback__))
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}: {said}" if own else said


def is_users_fault(error: BaseException) -> bool:
    """Tell whether an error passed through code that the user named."""
    return bool(_own_frames(error))


@contextlib.contextmanager
def faults_named() -> Iterator[None]:
    """Raise what goes wrong in the user's code as a `CodeError` that names its file and line."""
    try:
        yield
    except (CodeError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if not (isinstance(error, SystemExit) or is_users_fault(error)):
            raise
        raise CodeError(fault(error)) from error


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return where an error passed through the user's code, from the outside to the inside."""
    steps = list(traceback.walk_tb(error.__traceback__))
    summaries = traceback.extract_tb(error.__traceback__)
    names = [frame.f_globals.get("__name__", "") for frame, _ in steps]
    return [each for each, name in zip(summaries, names, strict=True) if name.startswith(_OWN)]
