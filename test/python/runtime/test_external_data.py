"""Constants in a file beside the shared object: found, checked, shared, replaced in one step."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import ExecutionError
from relax_mlir.runtime import external
from relax_mlir.tools import relax_compile, relax_run

COUNT = 1 << 18
TEXT = f"""
!v = tensor<{COUNT}xf32>
func.func @main(%x: !v {{graph.name = "x"}}, %w: !v {{graph.name = "w"}},
                %odd: tensor<301xbf16> {{graph.name = "odd"}}) -> (!v, tensor<301xbf16>, !v) {{
  %0 = "graph.add"(%x, %w) : (!v, !v) -> !v
  %z = arith.constant dense<0.0> : !v
  return %0, %odd, %z : !v, tensor<301xbf16>, !v
}}"""
W = np.arange(COUNT, dtype=np.float32)
ODD = np.arange(301, dtype=np.uint16)


def compiled(w: np.ndarray = W) -> relax_mlir.Executable:
    return relax_mlir.compile(TEXT, parameters={"w": w, "odd": ODD}, opt_level=0)


def check(path: Path, w: np.ndarray = W) -> None:
    x = np.ones(COUNT, np.float32)
    total, odd, zeros = relax_mlir.load(path)["main"](x)
    np.testing.assert_array_equal(total, x + w)
    assert np.asarray(odd).tobytes() == ODD.tobytes()
    assert not zeros.any()


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A shared object, and the file of its constants."""
    compiled().save(tmp_path / "model.so", external_data=True)
    (data,) = tmp_path.glob("model-*.safetensors")
    return tmp_path / "model.so", data


def test_both_parts_are_what_they_say(pair: tuple[Path, Path], tmp_path: Path):
    shared, data = pair
    check(shared)
    size = int.from_bytes(data.read_bytes()[:8], "little")
    header = json.loads(data.read_bytes()[8 : 8 + size])
    wide, narrow = header.values()
    assert (wide["dtype"], wide["shape"]) == ("F32", [COUNT])
    assert (narrow["dtype"], narrow["shape"]) == ("BF16", [301])
    assert wide["data_offsets"][1] == narrow["data_offsets"][0]
    assert (8 + size) % 4096 == 0
    assert data.read_bytes()[8 + size :] == W.tobytes() + ODD.tobytes()
    assert shared.stat().st_size < 100_000  # zeros are in neither
    compiled().save(tmp_path / "one.so")
    assert 0 <= (tmp_path / "one.so").stat().st_size - W.nbytes < 100_000
    check(tmp_path / "one.so")


def test_the_pair_moves_and_is_saved_again(pair: tuple[Path, Path], tmp_path: Path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for file in pair:
        file.rename(folder / file.name)
    loaded = relax_mlir.load(folder / "model.so")
    (tmp_path / "more").mkdir()
    loaded.save(tmp_path / "more" / "again.so")
    check(tmp_path / "more" / "again.so")
    assert len(list((tmp_path / "more").iterdir())) == 2


def as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def with_byte(at: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return change


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "No such file or directory"),
    "short": (lambda path: os.truncate(path, 5000), "has 5000 bytes, but 1053274 are expected"),
    "long": (lambda path: path.write_bytes(path.read_bytes() + b"x"), "has 1053275 bytes"),
    "empty": (lambda path: path.write_bytes(b""), "has 0 bytes"),
    "header": (with_byte(40), "is another file than was saved with the module"),
    "first": (with_byte(4096), "is damaged"),
    "last": (with_byte(-1), "is damaged"),
    "folder": (as_folder, "is not a regular file"),
    "fifo": (as_fifo, "is not a regular file"),
    "link to itself": (lambda p: (p.unlink(), p.symlink_to(p.name)), "symbolic links"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_wrong_file_is_an_error(
    kind: str, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
):
    shared, data = pair
    damage, message = DAMAGE[kind]
    damage(data)
    with pytest.raises(ExecutionError, match=f"cannot load '.*': its constants, '{data}': .*") as e:
        relax_mlir.load(shared)
    assert message in str(e.value)
    assert relax_run.main([str(shared), "--list"]) == 1
    assert message in capsys.readouterr().err


def test_the_constants_of_another_module_are_refused(pair: tuple[Path, Path], tmp_path: Path):
    shared, data = pair
    compiled(W + 1).save(tmp_path / "other.so", external_data=True)
    (other,) = tmp_path.glob("other-*.safetensors")
    other.replace(data)
    with pytest.raises(ExecutionError, match="is another file than was saved with the module"):
        relax_mlir.load(shared)


def test_a_file_that_comes_later_is_found(pair: tuple[Path, Path]):
    shared, data = pair
    data.rename(data.with_suffix(".away"))
    library = ctypes.CDLL(str(shared))
    library.rx_last_error.restype = ctypes.c_char_p
    library.rx_create.restype = ctypes.c_void_p
    assert not library.rx_create()
    assert b"No such file" in library.rx_last_error(None)
    data.with_suffix(".away").rename(data)
    check(shared)


@pytest.mark.parametrize("failing", [1, 2])
def test_who_is_killed_while_saving_leaves_the_old_pair(
    failing: int, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    """The first file that gets its name is that of constants, the second the shared object."""
    shared, _ = pair
    replaced: list[object] = []
    rename = os.replace

    def replace(source: str, target: Path) -> None:
        replaced.append(target)
        if len(replaced) == failing:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        compiled(W + 1).save(shared, external_data=True)
    check(shared)
    assert len(list(shared.parent.iterdir())) == 1 + failing
    monkeypatch.undo()
    compiled(W + 1).save(shared, external_data=True)
    check(shared, W + 1)


def test_sums_are_those_of_the_runtime(tmp_path: Path):
    """Of 16 MiB and less, all bytes are summed, of more, samples; one side writes, one reads."""
    rng = np.random.default_rng(0)
    for size in (1, 7, 8, 9, (16 << 20) - 1, 16 << 20, (16 << 20) + 1, (16 << 20) + 8193):
        data = rng.integers(0, 256, size, np.uint8).tobytes()
        changed = bytearray(data)
        changed[size // 2 // 4096 * 4096 if size <= 16 << 20 else 1] ^= 64
        assert external.checksum(data) != external.checksum(bytes(changed))
    count = (17 << 20) // 4 + 1
    text = f"""func.func @main(%w: tensor<{count}xi32>) -> tensor<{count}xi32> {{
      return %w : tensor<{count}xi32>
    }}"""
    w = rng.integers(0, 1 << 30, count).astype(np.int32)
    relax_mlir.compile(text, parameters={"arg0": w}).save(tmp_path / "m.so", external_data=True)
    np.testing.assert_array_equal(relax_mlir.load(tmp_path / "m.so")["main"](), w)


READ = """
import sys
import numpy as np
import relax_mlir.executable
exe = relax_mlir.executable.load(sys.argv[1])
assert exe["main"](np.zeros(int(sys.argv[2]), np.float32))[0].sum() > 0
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("external_data", [False, True])
def test_two_processes_share_pages(tmp_path: Path, external_data: bool):
    compiled().save(tmp_path / "model.so", external_data=external_data)
    file = next(tmp_path.glob("*.safetensors")) if external_data else tmp_path / "model.so"
    command = [sys.executable, "-c", READ, str(tmp_path / "model.so"), str(COUNT)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe) for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        for process in processes:
            (found,) = [m for m in mappings(process.pid, file) if m["Size"] >= W.nbytes >> 10]
            assert found["Rss"] >= W.nbytes >> 10
            # The other process has the same pages; those not written to the disk yet are "dirty".
            assert found["Shared_Clean"] + found["Shared_Dirty"] == found["Rss"]
            assert found["Private_Dirty"] == found["Private_Clean"] == found["Anonymous"] == 0
            assert found["Pss"] < 0.6 * found["Rss"]
    finally:
        for process in processes:
            process.communicate()


def mappings(process: int, file: Path) -> list[dict[str, int]]:
    """The numbers that the kernel has of each mapping of a file into a process, in kB."""
    found: list[dict[str, int]] = []
    wanted = False
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            wanted = words[4] == str(file.stat().st_ino)
            if wanted:
                found.append({})
        elif wanted and words[-1] == "kB":
            found[-1][words[0][:-1]] = int(words[1])
    return found


def test_the_tool_writes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    values = ", ".join(map(str, range(300)))
    source = tmp_path / "small.mlir"
    source.write_text(f"""func.func @main() -> tensor<300xi32> {{
      %0 = arith.constant dense<[{values}]> : tensor<300xi32>
      return %0 : tensor<300xi32>
    }}""")
    output = tmp_path / "small.so"
    for more in ([], ["--stats"]):
        assert relax_compile.main([str(source), "-o", str(output), "--external-data", *more]) == 0
        assert len(list(tmp_path.glob("small-*.safetensors"))) == 1
        np.testing.assert_array_equal(relax_mlir.load(output)["main"](), np.arange(300))
    for wrong in (["-o", "-"], ["-o", "/dev/null"], ["--emit=llvm"]):
        assert relax_compile.main([str(source), "--external-data", *wrong]) == 2
    assert "constants beside it need a file" in capsys.readouterr().err
