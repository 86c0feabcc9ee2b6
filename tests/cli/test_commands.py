"""Every command on small files gives the result of the task it calls."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

import bilateral
from bilateral import io, tasks
from bilateral.cli.files.points import scatter
from support import files
from support import scenes_on_disk as disk
from support.command import Main, fails, works
from support.scenes_on_disk import records


def test_depth(here: Path, call: Main) -> None:
    works(call("depth", "depth.png", "photo.png", "-o", "out.png", "--invalid", 0))
    made = disk.scene()
    expected = tasks.refine_depth(made.depth, made.photo, invalid=0)
    out = io.read(here / "out.png")
    assert out.dtype == np.uint16
    np.testing.assert_array_equal(out, expected)


def test_depth_of_a_video(here: Path, call: Main) -> None:
    made, rng = disk.scene(), np.random.default_rng(2)
    stream, expected = tasks.DepthStream(dtype=np.float32), {}
    for folder in ("depths", "photos"):
        (here / folder).mkdir()
    for number in range(8, 12):  # 10 comes after 9
        depth = np.where(made.depth > 0, made.depth + rng.integers(-9, 9, made.depth.shape), 0)
        io.write(here / "depths" / f"frame{number}.png", depth.astype(np.uint16))
        io.write(here / "photos" / f"frame{number}.png", made.photo)
        known = np.where(depth > 0, depth, np.nan)
        expected[number] = stream.push(known, made.photo)
    options = ("-o", "out", "--invalid", 0, "--video", "--jobs", 3)
    works(call("depth", "depths", "photos", *options))
    for number, x in expected.items():
        found = io.read(here / "out" / f"frame{number}.png")
        np.testing.assert_allclose(found, x, atol=0.6)
    refused = call("depth", "depths", "photos", *options, "--force", "--preset", "stereo")
    fails(refused, "--video: expected no --preset", code=2)


def test_depth_with_everything(here: Path, call: Main) -> None:
    made = disk.scene()
    rng = np.random.default_rng(1)
    confidence = rng.integers(1, 255, made.depth.shape, np.uint8)
    mask = np.where(rng.random(made.depth.shape) < 0.9, 255, 0).astype(np.uint8)
    io.write(here / "c.png", confidence)
    io.write(here / "m.png", np.stack([mask] * 3, axis=-1))  # gray, stored as RGB
    works(
        call(
            "depth", "depth.png", "photo.png", "-o", "out.tif", "--confidence", "c.png", "--mask",
            "m.png", "--preset", "sparse", "--sigma-xy", 6, "--sigma-luma", 9, "--sigma-chroma", 10,
            "--scale", 0.2, "--invalid", 0, "--invalid", 9000, "--depth-scale", 0.001,
        )
    )  # fmt: skip
    values = np.where(np.isin(made.depth, (0, 9000)), np.nan, made.depth * np.float32(0.001))
    expected = tasks.refine_depth(
        values.astype(np.float32), made.photo, confidence, mask=mask > 0, preset="sparse",
        sigma_xy=6, sigma_luma=9, sigma_chroma=10, scale=0.2,
    )  # fmt: skip
    out = io.read(here / "out.tif")
    assert out.dtype == np.uint16
    np.testing.assert_array_equal(out, np.rint(expected / 0.001))


def test_units(here: Path, call: Main) -> None:
    common = ("depth", "depth.png", "photo.png", "--invalid", 0, "--depth-scale", 0.001)
    works(call(*common, "-o", "steps.png"))
    works(call(*common, "-o", "metres.pfm"))
    works(call(*common, "-o", "metres.npy", "--dtype", "float64"))
    steps, metres = io.read(here / "steps.png"), io.read(here / "metres.pfm")
    assert (steps.dtype, metres.dtype) == (np.uint16, np.float32)
    assert io.read(here / "metres.npy").dtype == np.float64
    np.testing.assert_allclose(metres, steps * 0.001, atol=0.0006)
    # Floating-point files are in metres already.
    works(call("depth", "metres.pfm", "photo.png", "-o", "b.pfm", "--depth-scale", 0.001))
    assert 1 < np.median(io.read(here / "b.pfm")) < 4


def test_solve(here: Path, call: Main) -> None:
    made = disk.scene()
    target = made.depth.astype(np.float32)
    io.write(here / "target.npy", target)
    confidence = (made.depth > 0).astype(np.float32)
    io.write(here / "c.tif", confidence)
    works(
        call(
            "solve", "photo.png", "target.npy", "-o", "x.npy", "--confidence", "c.tif",
            "--smoothness", 9, "--smooth", 4, 4, "--blur", "uniform", "--tolerance", 1e-4,
        )
    )  # fmt: skip
    expected = bilateral.solve(
        made.photo, target, confidence, smoothness=9, smooth=(4, 4), blur="uniform", tolerance=1e-4
    )
    np.testing.assert_array_equal(io.read(here / "x.npy"), expected)


def test_solve_with_an_automatic_smoothness(here: Path, call: Main) -> None:
    made = disk.scene()
    target = np.where(np.random.default_rng(0).random(made.depth.shape) < 0.1, made.depth, np.nan)
    io.write(here / "target.npy", target.astype(np.float32))
    works(call("solve", "photo.png", "target.npy", "-o", "x.npy", "--smoothness", "auto"))
    expected = bilateral.solve(made.photo, target.astype(np.float32), smoothness="auto")
    np.testing.assert_array_equal(io.read(here / "x.npy"), expected)
    for wrong in ("-1", "nan", "much"):
        found = call("solve", "photo.png", "target.npy", "-o", "y.npy", "--smoothness", wrong)
        fails(found, "expected a number above 0", code=2)


def test_solve_colours_and_videos(here: Path, call: Main) -> None:
    works(call("solve", "photo.png", "photo.png", "-o", "soft.png", "--preview"))
    assert io.read(here / "soft.png").shape == (48, 64, 3)
    io.write(here / "flow.npy", np.ones((48, 64, 2), np.float32))
    works(call("solve", "photo.png", "flow.npy", "-o", "f.npy", "--preview", "--report", "f.html"))
    assert io.read(here / "f.preview.png").shape == (48, 64, 3)
    made = [disk.scene(number) for number in range(3)]
    io.write(here / "video.tif", np.stack([m.photo for m in made]), pages=True)
    io.write(here / "maps.tif", np.stack([m.depth for m in made]), pages=True)
    works(call("solve", "video.tif", "maps.tif", "-o", "x.tif", "--sigma-t", 2, "--preview"))
    x = io.read(here / "x.tif")
    assert (x.shape, x.dtype) == ((3, 48, 64), np.uint16)
    assert io.read(here / "x.preview.png").shape == (48, 64, 3)


def few_points(shape: tuple[int, ...]) -> np.ndarray:
    """Return a map with a few depths in millimetres, and 0 elsewhere."""
    points = np.zeros(shape, np.uint16)
    points[4::8, 4::8] = np.random.default_rng(3).integers(1000, 4000, points[4::8, 4::8].shape)
    return points


def test_complete(here: Path, call: Main) -> None:
    made = disk.scene()
    points = few_points(made.depth.shape)
    io.write(here / "points.png", points)
    works(call("complete", "points.png", "photo.png", "-o", "x.png", "--kind", "depth"))
    out = io.read(here / "x.png")
    expected = tasks.complete_depth(points, made.photo, kind="depth", dtype=np.float64)
    assert out.dtype == np.uint16
    np.testing.assert_allclose(out, expected, atol=0.6)


@pytest.mark.parametrize("separator", [",", ";", " ", ", ", "\t"])
def test_complete_from_a_list(here: Path, call: Main, separator: str) -> None:
    made = disk.scene()
    points = few_points(made.depth.shape)
    y, x = np.nonzero(points)
    rows = np.stack([x + 0.3, y - 0.3, points[y, x] / 1000], axis=1)
    lines = ["x y depth", "# a comment", *(separator.join(f"{v:.4f}" for v in r) for r in rows)]
    lines.append(separator.join(("-5", "2", "9")))  # outside of the photograph
    (here / "points.csv").write_text("\n".join(lines) + "\n")
    np.save(here / "points.npy", rows)
    expected = np.where(points > 0, points / np.float32(1000), np.nan).astype(np.float32)
    expected = tasks.complete_depth(expected, made.photo)
    works(call("complete", "points.csv", "photo.png", "-o", "out/"))
    np.testing.assert_allclose(io.read(here / "out" / "points.pfm"), expected, rtol=1e-4)
    works(call("complete", "points.npy", "photo.png", "-o", "y.npy"))
    np.testing.assert_allclose(io.read(here / "y.npy"), expected, rtol=1e-4)


def test_complete_says_what_is_wrong_with_a_list(here: Path, call: Main) -> None:
    def refused(text: str, message: str) -> None:
        (here / "points.csv").write_text(text)
        fails(call("complete", "points.csv", "photo.png", "-o", "x.pfm"), message)

    refused("x, y, z\n1, 2\n", "points.csv: line 2: expected x, y and value, got '1 2'")
    refused("1 2 3\n4 five 6\n", "points.csv: line 2: expected x, y and value")
    refused("# nothing\n", "points.csv: expected lines of x, y and value, got none")
    refused("900 900 1\n", "points.csv: expected points within the photograph")
    (here / "points.csv").write_bytes(b"\xff\xfe\x00")
    refusal = call("complete", "points.csv", "photo.png", "-o", "x.pfm")
    fails(refusal, "points.csv: expected lines of x, y and value in UTF-8")


def test_many_points_outside_of_the_photograph_are_reported() -> None:
    rows = np.array([[1, 1, 9.0], [0, 0, 1.0], [0, 3, 1.0], [1, 5, 2.0]])  # x and y swapped
    with pytest.warns(UserWarning, match=r"points.csv: 2 of 4 points lie outside"):
        found = scatter(rows, (2, 4), "points.csv")
    assert np.isfinite(found).sum() == 2
    scatter(rows[[0, 1] * 10 + [2]], (2, 4), "points.csv")


def test_several_points_in_a_pixel_give_their_median() -> None:
    rows = np.array([[1, 1, 9.0], [1.2, 0.8, 2.0], [0.9, 1.1, 4.0], [0, 0, 1.0], [2, 0, np.nan]])
    found = scatter(rows, (2, 3), "points.csv")
    np.testing.assert_array_equal(found, np.float32([[1, np.nan, np.nan], [np.nan, 4, np.nan]]))


def test_superres(here: Path, call: Main) -> None:
    made = disk.scene()
    low = made.truth[::4, ::4].copy()
    low[3, 3] = 0
    io.write(here / "low.png", low)
    works(call("superres", "low.png", "photo.png", "-o", "x.png", "--invalid", 0, "--keep-holes"))
    x = io.read(here / "x.png")
    assert (x.shape, x.dtype) == (made.truth.shape, np.uint16)
    assert (x[12:16, 12:16] == 0).all()
    works(call("superres", "low.png", "photo.png", "-o", "y.png", "--invalid", 0, "--factor", 4))
    # Files with unknown values are read as float64.
    expected = tasks.superres_depth(low.astype(float), made.photo, 4, invalid=0, dtype=np.uint16)
    np.testing.assert_array_equal(io.read(here / "y.png"), expected)


def test_stereo(here: Path, call: Main) -> None:
    pattern = np.random.default_rng(0).integers(0, 256, (40, 70), np.uint8)
    io.write(here / "left.png", pattern[:, :60])
    io.write(here / "right.png", pattern[:, 5:65])
    works(call("stereo", "left.png", "right.png", "-o", "d.pfm", "--max-disparity", 16))
    expected = tasks.stereo_depth(pattern[:, :60], pattern[:, 5:65], 16)
    np.testing.assert_array_equal(io.read(here / "d.pfm"), expected)
    works(
        call(
            "stereo", "left.png", "right.png", "-o", "d.png", "--max-disparity", 16, "--loss",
            "none", "--dtype", "uint16", "--depth-scale", 1 / 256,
        )
    )  # fmt: skip
    assert np.median(io.read(here / "d.png")) / 256 == pytest.approx(5, abs=0.1)
    works(call("stereo", "left.png", "right.png", "-o", "new/", "--max-disparity", 16))
    assert (here / "new" / "left.pfm").exists()


def test_align(here: Path, call: Main) -> None:
    made = disk.scene()
    relative = (1000 / made.truth.astype(np.float32)).astype(np.float32)
    points = np.zeros_like(made.truth)
    points[::6, ::7] = made.truth[::6, ::7]
    io.write(here / "network.npy", relative)
    io.write(here / "points.png", points)
    works(call("align", "network.npy", "points.png", "-o", "x.png", "--truth", "truth.png"))
    np.testing.assert_array_equal(io.read(here / "x.png"), made.truth)
    works(
        call(
            "align", "network.npy", "points.png", "-o", "y.npy", "--reference", "photo.png",
            "--depth-scale", 0.001, "--kind", "inverse depth", "--dtype", "float32", "--preview",
        )
    )  # fmt: skip
    np.testing.assert_allclose(io.read(here / "y.npy"), made.truth * 0.001, rtol=1e-5)


def test_defocus(here: Path, call: Main) -> None:
    made = disk.scene()
    common = ("--focus", 1.5, "--aperture", 20, "--depth-scale", 0.001)
    works(call("defocus", "photo.png", "truth.png", "-o", "soft.png", *common))
    expected = tasks.defocus(made.photo, made.truth * np.float32(0.001), 1.5, 20)
    np.testing.assert_array_equal(io.read(here / "soft.png"), expected)
    works(call("defocus", "photo.png", "truth.png", "-o", "soft.jpg", *common, "--blades", 5))
    works(call("defocus", "photo.png", "truth.png", "-o", "soft.exr", *common))
    assert io.read(here / "soft.exr").max() <= 1


def test_colorize(here: Path, call: Main) -> None:
    photo = disk.scene().photo
    gray = photo.mean(axis=2).astype(np.uint8)
    marked = np.stack([gray] * 3, axis=-1)
    marked[4:6, 4:20] = photo[4:6, 4:20]
    marked[40:42, 24:40] = photo[40:42, 24:40]
    io.write(here / "gray.png", gray)
    io.write(here / "marked.png", marked)
    works(call("colorize", "gray.png", "marked.png", "-o", "colour.png"))
    np.testing.assert_array_equal(io.read(here / "colour.png"), tasks.colorize(gray, marked))
    alpha = np.where((marked != gray[..., None]).any(axis=2), 255, 0).astype(np.uint8)
    io.write(here / "layer.png", np.dstack([marked, alpha]))
    io.write(here / "strokes.png", alpha)
    code, out, err = call(
        "colorize", "gray.png", "layer.png", "-o", "b.jpg", "--mask", "strokes.png", "--json",
        "--truth", "photo.png", "--sigma-xy", 8, "--preset", "paper", "--report", "r.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    [record] = records(out)
    assert record["figures"]["after"]["psnr"] > record["figures"]["before"]["psnr"] > 5
    fails(call("colorize", "gray.png", "gray.png", "-o", "c.png"), "scribbles: expected")


def test_cut(here: Path, call: Main) -> None:
    made = disk.scene()
    near = made.truth == 1500
    marked = made.photo.copy()
    rows, columns = np.nonzero(near)
    marked[rows[::7], columns[::7]] = (0, 255, 0)
    rows, columns = np.nonzero(~near)
    marked[rows[::7], columns[::7]] = (255, 0, 0)
    io.write(here / "marked.png", marked)
    matte = tasks.cut_out(made.photo, marked)
    works(call("cut", "photo.png", "marked.png", "-o", "cut.png"))
    cutout = io.read(here / "cut.png")
    np.testing.assert_array_equal(cutout[..., :3], made.photo)
    np.testing.assert_array_equal(cutout[..., 3], np.rint(matte * 255))
    works(call("cut", "photo.png", "marked.png", "-o", "matte.tif", "--write", "matte"))
    np.testing.assert_array_equal(io.read(here / "matte.tif"), np.rint(matte * 255))
    works(call("cut", "photo.png", "marked.png", "-o", "mask.png", "--write", "mask", "--preview"))
    np.testing.assert_array_equal(io.read(here / "mask.png"), np.where(matte > 0.5, 255, 0))
    # A black and white picture is a rough mask.
    io.write(here / "rough.png", np.where(near, 255, 0).astype(np.uint8))
    works(call("cut", "photo.png", "rough.png", "-o", "b.png", "--write", "mask"))
    expected = tasks.cut_out(made.photo, mask=near, hard=True)
    np.testing.assert_array_equal(io.read(here / "b.png"), np.where(expected, 255, 0))
    works(call("cut", "photo.png", "marked.png", "-o", "c.png", "--mask", "rough.png"))
    fails(call("cut", "photo.png", "marked.png", "-o", "c.jpg"), "hold no transparency")
    fails(call("cut", "photo.png", "photo.png", "-o", "d.png"), "got none for this")


def soft_classes() -> files.Array:
    """Probabilities of three classes at a quarter of the size."""
    near = disk.scene().truth[2::4, 2::4] == 1500
    p = np.stack([np.where(near, 0.2, 0.7), np.where(near, 0.75, 0.2), np.full(near.shape, 0.1)])
    return np.moveaxis(p / p.sum(axis=0), 0, -1).astype(np.float32)


def test_segment(here: Path, call: Main) -> None:
    scores, photo = soft_classes(), disk.scene().photo
    io.write(here / "scores.npy", scores)
    io.write(here / "pages.tif", np.moveaxis(scores, -1, 0), pages=True)
    io.write(here / "channels.tif", scores)
    p = tasks.refine_segmentation(scores, photo)
    labels = np.argmax(p, axis=2)
    for name in ("scores.npy", "pages.tif", "channels.tif"):
        works(call("segment", name, "photo.png", "-o", "labels.png", "--preview", "--force"))
        stored = io.read(here / "labels.png")
        assert stored.dtype == np.uint8
        np.testing.assert_array_equal(stored, labels)
    assert len(np.unique(io.read(here / "labels.preview.png").reshape(-1, 3), axis=0)) == 2
    works(call("segment", "scores.npy", "photo.png", "-o", "p.tif"))
    np.testing.assert_array_equal(io.read(here / "p.tif"), p)
    works(call("segment", "scores.npy", "photo.png", "-o", "l.npy", "--labels"))
    np.testing.assert_array_equal(io.read(here / "l.npy"), labels)


def test_segment_a_mask(here: Path, call: Main) -> None:
    made = disk.scene()
    mask = np.where(made.truth == 1500, 255, 0).astype(np.uint8)
    io.write(here / "mask.png", mask)
    io.write(here / "coarse.png", mask[2::4, 2::4])
    io.write(here / "ignore.png", np.zeros_like(mask))
    code, out, err = call(
        "segment", "coarse.png", "photo.png", "-o", "out.png", "--truth", "mask.png", "--json",
        "--confidence", "uniform", "--ignore", "ignore.png", "--report", "r.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert records(out)[0]["figures"]["after"]["accuracy"] > 0.98
    assert set(np.unique(io.read(here / "out.png"))) == {0, 255}
    io.write(here / "trust.png", np.full_like(mask, 9))
    works(call("segment", "coarse.png", "photo.png", "-o", "t.png", "--confidence", "trust.png"))


def test_transparency_and_sixteen_bits_of_photographs(here: Path, call: Main) -> None:
    made = disk.scene()
    wide = np.dstack([made.photo, made.photo[..., 0]]).astype(np.uint16) * 257
    io.write(here / "wide.png", wide)
    works(call("depth", "depth.png", "wide.png", "-o", "out.png", "--invalid", "0"))
    expected = tasks.refine_depth(made.depth, wide[..., :3], invalid=0)
    np.testing.assert_array_equal(io.read(here / "out.png"), expected)
