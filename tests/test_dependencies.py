"""Optional packages: there, absent, or there but broken."""

import sys

import pytest

from agewise.dependencies import require

INSTALL_TORCH = (
    "pip install 'agewise[torch]' (pytorch.org says how to get the build for CPUs, which is far "
    "smaller)"
)


def test_a_package_that_is_there():
    assert require("pandas", "pandas").DataFrame({"a": [1]}).size == 1
    assert require("os.path", "ray").sep == "/"


@pytest.mark.parametrize(
    ("module", "extra", "message"),
    [
        (
            "flwr.app",
            "flower",
            "this needs flwr: pip install 'agewise[flower]'",
        ),
        ("ray", "ray", "this needs ray: pip install 'agewise[ray]'"),
        ("pandas", "pandas", "this needs pandas: pip install 'agewise[pandas]'"),
        ("torch", "torch", f"this needs torch: {INSTALL_TORCH}"),
    ],
)
def test_one_that_is_not_is_one_sentence(module, extra, message, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError) as error:
        require(module, extra)
    assert str(error.value) == message


def test_one_that_lacks_something_itself_says_what(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import nowhere_to_be_found")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        require("halfway", "ray")
