"""Find the public data sets, and say where each comes from and where to put it."""

from collections import namedtuple
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import middlebury, photos

DataSet = namedtuple("DataSet", "folder serves holds origin")
SETS = (
    DataSet(
        "hires",
        "convergence, speed, backward cost",
        "photographs of about 4 megapixels, *.jpg or *.png",
        "any; ours are wallpapers of KDE Plasma (Debian: plasma-workspace-wallpapers)",
    ),
    DataSet(
        "stereo",
        "stereo (Table 2), intervals",
        "a folder per scene of Middlebury's training set, version 3, at quarter size: im0.png, "
        "im1.png, calib.txt, disp0GT.pfm, mask0nocc.png; and the maps to refine, in 1/256 of a "
        "pixel: disp0_mccnnfast_raw_u16x256.png, disp0_sgbm_u16x256.png",
        "https://vision.middlebury.edu/stereo/submit3/ (MiddEval3-data-Q, MiddEval3-GT0-Q); the "
        "maps by MC-CNN (fast) with SGM, https://github.com/jzbontar/mc-cnn, and OpenCV's SGBM",
    ),
    DataSet(
        "depth_superres",
        "depth super-resolution (Table 3)",
        "_gth/NAME_big.png, _input/NAME_big/NAME_big_color.png and depth_1_n.png to depth_4_n.png "
        "for art, books and moebius; the authors' barronpoole/NAME_big/output_1_n.png to 4",
        "Ferstl et al. 2013, https://rvlab.icg.tugraz.at/project_page/project_tofusion/"
        "project_tofsuperresolution.html; the outputs from the paper's page, https://jonbarron.info",
    ),
    DataSet(
        "colorization",
        "colorization",
        "a folder per picture: gray, marked and original, or levin_result, as *.bmp or *.jpg",
        "Levin et al. 2004, https://www.cs.huji.ac.il/~yweiss/Colorization/",
    ),
    DataSet(
        "segmentation",
        "segmentation (Table 4), low rank",
        "photographs and labels of Pascal VOC 2012, and deeplab_probs/NAME.npz: a network's "
        "scores on a coarse grid (logits33, valid_hw, image_hw)",
        "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/; scores by any DeepLab",
    ),
)


class Data(NamedTuple):
    """A folder that has some of `SETS`, or None."""

    root: Path | None

    def folder(self, name: str) -> Path | None:
        folder = self.root / name if self.root else None
        return folder if folder and folder.is_dir() else None

    def photographs(self) -> Path | None:
        """The folder of photographs: ``hires``, or the root itself if photographs lie in it."""
        return self.root if self.root and photos.files(self.root) else self.folder("hires")

    def scenes(self) -> list[Path]:
        return [] if self.root is None else middlebury.folders(self.root)

    def missing(self) -> list[DataSet]:
        return [part for part in SETS if self.folder(part.folder) is None]

    def guide(self) -> str:
        """Say what to put where for the missing sets; empty if none is missing."""
        lines = [
            f"\n  {s.folder}/  for {s.serves}\n    what: {s.holds}\n    from: {s.origin}"
            for s in self.missing()
        ]
        title = "These data sets are missing; pictures of scikit-image stand in for them.\n"
        title += "Put each below one folder, and pass that folder as --data:"
        return "\n".join([title, *lines]) if lines else ""


def files(folder: Path | None) -> tuple[Path, ...]:
    return () if folder is None else tuple(sorted(p for p in folder.rglob("*") if p.is_file()))
