"""Files that are written whole."""

import os

import pytest

from agewise.files import NotRegularFile, atomic_write, write_whole


def test_the_mask_of_the_process_holds_and_is_never_touched(tmp_path, monkeypatch):
    """To read the mask one has to set it, and a file that another thread makes just then is open
    to everyone.
    """
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", None)
            with atomic_write(tmp_path / "file") as temporary:
                temporary.write_text("content")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_only_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "null").symlink_to("/dev/null")
    for name, kind in (("pipe", "a pipe"), ("folder", "a folder"), ("null", "a device")):
        with pytest.raises(NotRegularFile, match=f"{kind}, not a file.*{name}"):
            write_whole(tmp_path / name, b"")
    assert len(list(tmp_path.iterdir())) == 3
