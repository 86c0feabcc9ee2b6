"""Draw the picture of depth completion, completion.jpg, from scikit-image's stereo pair.

Run ``python docs/images/completion.py``; it needs ``pip install '.[demo]'`` and scikit-image.
"""

from pathlib import Path

import numpy as np
from overview import GAP, WIDTH, row
from PIL import Image
from skimage.data import stereo_motorcycle

from bilateral.cli.demo.views import disparity_view
from bilateral.filters.interpolation import interpolate_points
from bilateral.tasks import complete_depth

FRACTION = 0.005


def main() -> None:
    """Complete some of the true disparities and write the picture beside this file."""
    photo, _, truth = stereo_motorcycle()
    truth = np.where(np.isfinite(truth), truth, np.nan).astype(np.float32)
    known = np.random.default_rng(0).random(truth.shape) < FRACTION
    points = np.where(known, truth, np.float32(np.nan))
    view = disparity_view(truth)
    linear, dense = interpolate_points(points)[0], complete_depth(points, photo)
    errors = [view.mean_error(x, truth) for x in (linear, dense)]
    rows = [
        row(
            [
                ("photo", photo),
                ("0.5 % of the disparities, dots enlarged", view.paint(points)),
            ]
        ),
        row(
            [
                (f"linear interpolation: mean error {errors[0]:.2f} px", view.paint(linear)),
                (f"complete_depth: mean error {errors[1]:.2f} px", view.paint(dense)),
            ]
        ),
    ]
    canvas = Image.new("RGB", (WIDTH, rows[0].height + GAP + rows[1].height), "white")
    canvas.paste(rows[0], (0, 0))
    canvas.paste(rows[1], (0, rows[0].height + GAP))
    canvas.save(Path(__file__).with_name("completion.jpg"), quality=85, optimize=True)


if __name__ == "__main__":
    main()
