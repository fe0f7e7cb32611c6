"""Parts of a scenario: families of kinds that a user's class joins without being run by readers."""

import pickle
from typing import Annotated, Literal

import cloudpickle
import pytest
from pydantic import Field, ValidationError

from agewise.part import CodeError, Kinds, Part, Unloaded, fault, is_users_fault, values_of


class Shape(Part):
    """A family for these tests."""

    kind: str = ""

    def area(self) -> float:
        raise self.lacks("area")


class Square(Shape):
    """A square."""

    kind: Literal["square"] = "square"
    side: float = Field(gt=0)

    def area(self) -> float:
        return self.side**2


class Point(Shape):
    """A point."""

    kind: Literal["point"] = "point"


class Drawing(Part):
    """A section that holds a shape."""

    shape: Annotated[Shape, Kinds]


MINE = """
from tests.test_part import Shape

class Mine(Shape):
    width: float
    def area(self):
        return self.width / 0

class Idle(Shape):
    pass
"""


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return str(file)


def read(shape, *, load_code=False):
    return Drawing.model_validate({"shape": shape}, context={"load_code": load_code})


def test_a_kind_is_found_by_its_name_and_may_be_written_by_it_alone():
    assert read({"kind": "square", "side": 2}).shape.area() == 4.0
    assert read("point") == Drawing(shape=Point())
    assert read({"kind": "square", "side": 2}).model_dump() == {
        "shape": {"kind": "square", "side": 2.0}
    }


@pytest.mark.parametrize(
    ("shape", "where"),
    [
        ({"kind": "square", "side": -1}, ("shape", "square", "side")),
        ({"kind": "circle"}, ("shape",)),
        ({"side": 1}, ("shape",)),
    ],
)
def test_mistakes_are_told_with_their_place(shape, where):
    with pytest.raises(ValidationError) as caught:
        read(shape)
    assert caught.value.errors()[0]["loc"] == where


def test_code_is_not_run_unless_asked_for(tmp_path):
    file = tmp_path / "ran.py"
    file.write_text("raise SystemExit(0)")
    part = read({"kind": f"{file}:Any", "width": 2}).shape
    assert isinstance(part, Unloaded)
    assert values_of(part) == {"kind": f"{file}:Any", "width": 2}
    with pytest.raises(CodeError, match="was not loaded"):
        part.area()
    with pytest.raises(ValidationError, match="cannot be run: .*SystemExit"):
        read(f"{file}:Any", load_code=True)


def test_a_users_class_is_a_kind_like_others_and_travels_by_value(mine):
    drawing = read({"kind": f"{mine}:Mine", "width": 2}, load_code=True)
    assert drawing.model_dump() == {"shape": {"kind": f"{mine}:Mine", "width": 2.0}}
    again = pickle.loads(cloudpickle.dumps(drawing))  # noqa: S301 - of this test
    for one in (drawing, again):
        with pytest.raises(ZeroDivisionError) as caught:
            one.shape.area()
        assert is_users_fault(caught.value)
        assert fault(caught.value).startswith("mine.py:7: ZeroDivisionError")


def test_what_a_class_lacks_is_named(mine):
    with pytest.raises(CodeError, match="Idle has no method area, which every shape needs"):
        read(f"{mine}:Idle", load_code=True).shape.area()


@pytest.mark.parametrize(
    ("name", "said"),
    [("None_", "there is no subclass of agewise's Shape called None_, only Mine, Idle")],
)
def test_a_class_that_is_not_there_is_told(mine, name, said):
    with pytest.raises(ValidationError, match=said):
        read(f"{mine}:{name}", load_code=True)


def test_an_object_of_a_program_stays_an_object():
    class Local(Shape):
        def area(self):
            return 1.0

    drawing = Drawing(shape=Local())
    assert drawing.shape.kind == "Local"
    assert values_of(drawing)["shape"] is drawing.shape
