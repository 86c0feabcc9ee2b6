"""The demo: its files, its report and its errors."""

import sys

import numpy as np
import pytest

pytest.importorskip("rich", reason="the demo's progress and tables need rich")
pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("skimage", reason="the demo's photograph comes with scikit-image")

from PIL import Image

from bilateral.cli.demo import room, runner, scenes, views
from bilateral.cli.display import colormaps
from bilateral.cli.main import main

MEASURED = ("superres", "stereo")  # their input is measured, not a spoiled truth
WRONG = {"segment": 0.1}  # least fraction of wrong pixels
SPARSE = next(scene for scene in runner.SCENES if scene.name == "sparse")


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    steps = []
    result = runner.run(
        SPARSE, tmp_path_factory.mktemp("demo") / "new", lambda *step: steps.append(step)
    )
    return result, steps


def test_repairs_better_than_the_usual_remedy(sparse):
    result, _ = sparse
    assert result.after < 0.9 * result.baseline < result.before
    assert result.info.converged
    assert result.pixels == 500 * 741


def test_the_callback_is_called_after_every_step(sparse):
    result, steps = sparse
    assert [number for number, _ in steps] == list(range(1, result.info.iterations + 1))


def test_picture_holds_four_panels(sparse):
    result, _ = sparse
    with Image.open(result.file) as picture:
        width, height = picture.size
        pixels = np.asarray(picture)
    assert width > 4 * 741
    assert height > 500
    photo, _ = scenes.motorcycle()
    top = next(y for y in range(height - 500) if (pixels[y, 16:757] == photo[0]).all())
    assert (pixels[top : top + 500, 16:757] == photo).all()


def test_main_writes_and_sums_up(tmp_path, capsys):
    assert runner.main(tmp_path, ["sparse"]) == 0
    out, err = capsys.readouterr()
    assert [file.name for file in tmp_path.iterdir()] == ["sparse.png"]
    assert "sparse.png" in out
    assert "nearest pixel" in out
    assert "\x1b" not in out
    assert err == ""


def test_several_scenes_end_with_a_contact_sheet(tmp_path, capsys):
    assert runner.main(tmp_path, ["sparse", "superres"]) == 0
    assert "all.png" in capsys.readouterr().out
    sizes = []
    for name in ("sparse", "superres", "all"):
        with Image.open(tmp_path / f"{name}.png") as picture:
            sizes.append(picture.size)
    (sparse, superres, everything) = sizes
    expected = sum(round(h * everything[0] / w) for w, h in (sparse, superres))
    assert everything[1] == expected


@pytest.mark.parametrize("scene", runner.SCENES, ids=lambda scene: scene.name)
def test_scenes_are_spoiled_and_repeatable(scene):
    problem, again = scene.make(), scene.make()
    np.testing.assert_array_equal(problem.target, again.target)
    known = np.isfinite(problem.truth)
    if scene.name not in MEASURED:
        assert np.isnan(problem.target[~known]).all()
    wrong = (problem.target[known] != problem.truth[known]).mean()
    assert wrong > WRONG.get(scene.name, 0.3)


@pytest.mark.parametrize("scene", ["colorize", "segment"])
def test_pictures_and_labels_are_repaired_better_than_usual(scene, tmp_path):
    (made,) = (s for s in runner.SCENES if s.name == scene)
    result = runner.run(made, tmp_path)
    assert result.after < 0.9 * result.baseline < result.before
    with Image.open(result.file) as picture:
        assert picture.width > 4 * 600


def test_planes_fill_a_room_without_stairs(tmp_path):
    (slanted,) = (s for s in runner.SCENES if s.name == "slanted")
    result = runner.run(slanted, tmp_path)
    assert result.after < 0.2 * result.baseline
    assert result.info.converged
    with Image.open(result.file) as picture:
        assert picture.width > 5 * room.SHAPE[1]  # the fifth panel shows the stairs


def test_surfaces_of_the_room_are_planes_in_disparity():
    photo, disparity = room.room((100, 150))
    assert photo.shape == (100, 150, 3)
    assert photo.dtype == np.uint8
    curvature = np.abs(np.diff(disparity.astype(float), 2, axis=0))
    assert np.median(curvature) < 1e-5
    assert (curvature > 1e-2).mean() < 0.1  # only where surfaces meet


def test_a_note_never_rounds_to_all_unknown():
    values = np.full((50, 50), np.nan)
    values[0, :5] = 1
    assert "99.8 % unknown" in views.unknown_note(values)


def test_list(capsys):
    assert main(["demo", "--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [scene.name for scene in runner.SCENES]


def test_unknown_scene(capsys, tmp_path):
    assert main(["demo", "--scene", "moon", "--output", str(tmp_path / "none")]) == 2
    err = capsys.readouterr().err
    assert "'moon'" in err
    assert "sparse" in err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("module", ["rich", "skimage"])
def test_missing_library(module, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    assert runner.main(tmp_path) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert 'pip install "bilateral[demo]"' in err


def test_output_that_is_a_file(tmp_path, capsys):
    file = tmp_path / "taken"
    file.touch()
    assert runner.main(file, ["sparse"]) == 1
    assert "taken" in capsys.readouterr().err


def test_unknown_values_are_gray():
    scale = colormaps.Scale(colormaps.turbo, 0, 1, "m")
    painted = scale.paint(np.array([[0.1, np.nan, 0.9]]))
    assert painted[0, 1].tolist() == list(colormaps.UNKNOWN)
    assert painted[0, 0, 2] > painted[0, 0, 0]
    assert painted[0, 2, 0] > painted[0, 2, 2]


def test_dots_grow_without_wrapping_around():
    values = np.full((5, 5), np.nan)
    values[0, 0] = 1
    assert np.argwhere(np.isfinite(colormaps.enlarge_dots(values))).max() == 1
