"""Draw the picture of the planar model, planar.jpg, from the scene `slanted` of the demo.

Run ``python docs/images/planar.py``; it needs ``pip install '.[demo]'``.
"""

from pathlib import Path

from overview import GAP, WIDTH, repair, row
from PIL import Image

from bilateral.cli.demo import scenes


def main() -> None:
    """Solve the scene with both models and write the picture beside this file."""
    scene = scenes.slanted()
    planar = repair(scene)
    constant_error, planar_error = (
        scene.view.mean_error(x, scene.truth) for x in (scene.baseline, planar)
    )
    rows = [
        row(
            [
                ("photo", scene.reference),
                ("0.2 % of the disparities, dots enlarged", scene.view.paint(scene.target)),
            ]
        ),
        row(
            [
                (
                    f'model="constant": mean error {constant_error:.2f} px',
                    scene.view.paint(scene.baseline),
                ),
                (f'model="planar": mean error {planar_error:.2f} px', scene.view.paint(planar)),
            ]
        ),
    ]
    canvas = Image.new("RGB", (WIDTH, rows[0].height + GAP + rows[1].height), "white")
    canvas.paste(rows[0], (0, 0))
    canvas.paste(rows[1], (0, rows[0].height + GAP))
    canvas.save(Path(__file__).with_name("planar.jpg"), quality=85, optimize=True)


if __name__ == "__main__":
    main()
