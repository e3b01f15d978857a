"""Images of files: what Pillow makes of them, and what is refused."""

import io
import struct
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from relax_mlir.errors import UsageError
from relax_mlir.llm.vision import images
from relax_mlir.llm.vision.images import read_image

RNG = np.random.default_rng(3)
RGB = RNG.integers(0, 256, (7, 11, 3)).astype(np.uint8)


def saved(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


@pytest.mark.parametrize("form", ["PNG", "BMP", "WEBP"])
def test_files_and_bytes(tmp_path: Path, form: str) -> None:
    options = {"lossless": True} if form == "WEBP" else {}
    data = saved(Image.fromarray(RGB), form, **options)
    (tmp_path / "x").write_bytes(data)
    for source in (data, tmp_path / "x", str(tmp_path / "x"), RGB):
        np.testing.assert_array_equal(read_image(source), RGB)


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr"])
def test_other_colours(mode: str) -> None:
    image = Image.fromarray(RGB).convert(mode)
    form = "JPEG" if mode in ("CMYK", "YCbCr") else "PNG"
    data = saved(image, form)
    want = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    np.testing.assert_array_equal(read_image(data), want)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparency_is_on_white(mode: str) -> None:
    alpha = RNG.integers(0, 256, RGB.shape[:2]).astype(np.uint8)
    bands = [*RGB.transpose(2, 0, 1)][: len(mode) - 1]
    image = Image.merge(mode, [Image.fromarray(band) for band in (*bands, alpha)])
    colours = np.stack(bands if len(bands) == 3 else bands * 3, 2).astype(float)
    share = alpha[:, :, None] / 255
    want = colours * share + 255 * (1 - share)
    np.testing.assert_allclose(read_image(saved(image)), want, atol=1)


def test_a_transparent_colour() -> None:
    data = saved(Image.fromarray(RGB), transparency=tuple(map(int, RGB[2, 3])))
    want = RGB.copy()
    want[2, 3] = 255
    np.testing.assert_array_equal(read_image(data), want)


def test_sixteen_bits() -> None:
    values = RNG.integers(0, 65536, (5, 3)).astype(np.uint16)
    got = read_image(saved(Image.fromarray(values)))
    np.testing.assert_array_equal(got, np.repeat((values >> 8)[:, :, None], 3, 2))


def test_the_first_of_several() -> None:
    frames = [Image.fromarray(np.full((4, 5, 3), value, np.uint8)) for value in (0, 255)]
    data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(read_image(data), np.zeros((4, 5, 3), np.uint8))


def test_images_are_upright() -> None:
    noted = Image.Exif()
    noted[0x0112] = 6  # to be rotated by a quarter
    got = read_image(saved(Image.fromarray(RGB), exif=noted))
    np.testing.assert_array_equal(got, np.rot90(RGB, -1))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"hello", "the image: is no image: expects one of PNG, JPEG"),
        ("/proc/self/mem", "/proc/self/mem: cannot be read: Input/output error"),
    ],
)
def test_messages(source: str | bytes, message: str) -> None:
    """They name the file, and are the same in every run."""
    with pytest.raises(UsageError) as error:
        read_image(source)
    assert str(error.value).startswith(message)
    assert "0x" not in str(error.value)


@pytest.mark.parametrize("progressive", [False, True])
def test_scans_of_all_pixels(monkeypatch: pytest.MonkeyPatch, progressive: bool) -> None:
    """A short one takes as long as a long one; those behind the end are none."""
    image = Image.fromarray(np.full((90, 130, 3), 99, np.uint8))
    data = saved(image, "JPEG", progressive=progressive, exif=b"Exif\0\0" + b"\xff\xda" * 50)
    count = 10 if progressive else 1  # as libjpeg writes them
    monkeypatch.setattr(images, "MAX_SCANNED", count * 90 * 130)
    assert read_image(data + b"\xff\xda" * 50).shape == (90, 130, 3)
    scan = data[data.rindex(b"\xff\xda") : -2]
    with pytest.raises(UsageError, match=f"has {count + 1} scans of 130 x 90 pixels"):
        read_image(data[:-2] + b"\xff\x01" + scan + data[-2:])


def test_short_scans() -> None:
    """Each took a tenth of a second, and a request could have tens of thousands of them."""
    data = saved(Image.new("L", (8000, 8000), 128), "JPEG", progressive=True)
    begin = data.rindex(b"\xff\xc4")
    bomb = data[:-2] + data[begin:-2] * 20_000 + data[-2:]
    assert len(bomb) < 3 << 20
    started = time.monotonic()
    with pytest.raises(UsageError, match="has 20006 scans"):
        read_image(bomb)
    assert time.monotonic() - started < 5


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A file with these chunks after its header of 8-bit colours."""
    head = (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    out = b"\x89PNG\r\n\x1a\n"
    for kind, data in (head, *chunks, (b"IEND", b"")):
        out += struct.pack(">I", len(data)) + kind + data
        out += struct.pack(">I", zlib.crc32(kind + data))
    return out


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no image"),
        (b"not an image at all", "is no image"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "is no image"),
        (saved(Image.fromarray(RGB))[:60], "is no image"),
        (png(0, 4), "is no image"),
        (png(4, 4), "is no image"),
        (png(4, 4, (b"IDAT", zlib.compress(b"\0" * 9))), "is no image"),
        (png(10_000, 10_000), "has 10000 x 10000 pixels"),
        (png(100_000, 100_000), "pixels"),
        (png(1, 65_537), "65536 on an edge"),
        (png(2**31 - 1, 2**31 - 1), "is no image|pixels"),
        (saved(Image.fromarray(RGB), "TIFF"), "expects one of PNG"),
        (saved(Image.fromarray(RGB), "PPM"), "expects one of PNG"),
    ],
)
def test_what_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.png").write_bytes(data)
    for source, name in ((data, "the image"), (tmp_path / "x.png", "x.png")):
        with pytest.raises(UsageError, match=message) as raised:
            read_image(source)
        assert name in str(raised.value)


@pytest.mark.parametrize(
    "array",
    [RGB[:0], RGB[:, :0], RGB[:, :, :1], RGB[0], RGB.astype(np.float32), np.zeros((2, 3, 4), "u1")],
)
def test_arrays_that_are_none(array: np.ndarray) -> None:
    with pytest.raises(UsageError, match=r"expects uint8 of \(height, width, 3\), with pixels"):
        read_image(array)


def test_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = saved(Image.fromarray(RGB))
    monkeypatch.setattr(images, "MAX_BYTES", len(data))
    monkeypatch.setattr(images, "MAX_PIXELS", RGB.shape[0] * RGB.shape[1])
    (tmp_path / "x.png").write_bytes(data)
    assert read_image(data).shape == RGB.shape
    monkeypatch.setattr(images, "MAX_BYTES", len(data) - 1)
    for source in (data, tmp_path / "x.png"):
        with pytest.raises(UsageError, match="has more than"):
            read_image(source)
    monkeypatch.setattr(images, "MAX_PIXELS", RGB.shape[0] * RGB.shape[1] - 1)
    with pytest.raises(UsageError, match="expects at most 76 in all"):
        read_image(RGB)


def test_cut_and_broken_files_are_refused_or_read() -> None:
    """Nothing but UsageError, whatever byte is wrong."""
    data = saved(Image.fromarray(RGB), "GIF")
    for position in range(0, len(data), 5):
        broken = bytearray(data)
        broken[position] ^= int(RNG.integers(1, 256))
        for each in (bytes(broken), data[:position]):
            try:
                assert read_image(each).dtype == np.uint8
            except UsageError:
                pass
