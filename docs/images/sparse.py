"""Draw the picture of few known pixels, sparse.jpg, from the scene `sparse` of the demo.

Run ``python docs/images/sparse.py``; it needs ``pip install '.[demo]'``.
"""

from pathlib import Path

from overview import GAP, WIDTH, row
from PIL import Image

import bilateral
from bilateral.cli.demo import scenes


def main() -> None:
    """Solve the scene with two smoothnesses and write the picture beside this file."""
    scene = scenes.sparse()
    panels = []
    for smoothness in (4.0, "auto"):
        x = bilateral.solve(scene.reference, scene.target, smoothness=smoothness)
        error = scene.view.mean_error(x, scene.truth)
        shown = repr(smoothness).replace("'", '"')
        panels.append((f"smoothness={shown}: mean error {error:.2f} px", scene.view.paint(x)))
    first = [("photo", scene.reference), ("1 % known", scene.view.paint(scene.target))]
    rows = [row(first), row(panels)]
    canvas = Image.new("RGB", (WIDTH, rows[0].height + GAP + rows[1].height), "white")
    canvas.paste(rows[0], (0, 0))
    canvas.paste(rows[1], (0, rows[0].height + GAP))
    canvas.save(Path(__file__).with_name("sparse.jpg"), quality=85, optimize=True)


if __name__ == "__main__":
    main()
