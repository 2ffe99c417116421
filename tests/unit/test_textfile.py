import os
import threading

import pytest

from fusesim.errors import InputError, MeasurementError
from fusesim.textfile import read_bytes, read_text


def read(path):
    return read_text(path, "a recipe", limit=1 << 20, fault=MeasurementError)


def test_text_comes_back_as_it_is(tmp_path):
    file = tmp_path / "some.txt"
    file.write_bytes("caf\u00e9\r\n".encode())
    assert read(file) == read(str(file)) == "caf\u00e9\r\n"
    file.write_bytes(b"x" * (1 << 20))
    assert len(read(file)) == 1 << 20


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"x" * ((1 << 20) + 1), "some.txt: larger than 1 MiB, so not a recipe"),
        (b"\xff\xfe{}", "some.txt: not text in UTF-8, so not a recipe"),
    ],
    ids=["size", "encoding"],
)
def test_what_cannot_be_such_a_file_is_refused(tmp_path, content, complaint):
    file = tmp_path / "some.txt"
    file.write_bytes(content)
    with pytest.raises(MeasurementError) as caught:
        read(file)
    assert str(caught.value) == complaint


def test_only_regular_files_are_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # reading it would wait for ever
    for path in (pipe, tmp_path):
        with pytest.raises(MeasurementError, match="not a file; give the path of a recipe$"):
            read(path)


@pytest.mark.parametrize(
    ("name", "reason"), [("absent.txt", "No such file or directory"), ("a\0b", "embedded null byte")]
)
def test_the_reason_is_told(tmp_path, name, reason):
    with pytest.raises(MeasurementError, match=f"cannot be read: {reason}$"):
        read(tmp_path / name)


def test_a_pipe_is_read_as_bytes_and_a_device_is_not(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"abc",))
    writer.start()
    assert read_bytes(pipe, "a module", limit=10, fault=InputError) == b"abc"
    writer.join()
    with pytest.raises(InputError, match="/dev/zero: not a file; give the path of a module"):  # it never ends
        read_bytes("/dev/zero", "a module", limit=10, fault=InputError)
    long = tmp_path / "long"
    long.write_bytes(b"x" * 11)
    with pytest.raises(InputError, match="long: larger than 0 MiB, so not a module"):
        read_bytes(long, "a module", limit=10, fault=InputError)
