"""Complete the points of a COLMAP model to dense depth.

    python examples/programs/colmap_points.py sparse/0 images/photo.jpg dense.npy

The folder has the model as text (images.txt, points3D.txt); COLMAP's model_converter writes it with
--output_type TXT. Depths are in the model's unit, which is metric only if the model is scaled.
"""

import sys
from pathlib import Path

import numpy as np

import bilateral
from bilateral import io


def rows(path: Path) -> list[str]:
    """Return the lines of a file of COLMAP, without comments."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def read_points(model: Path, photo_name: str) -> np.ndarray:
    """Return x, y and depth of the points that a photograph shows."""
    positions = {}
    for line in rows(model / "points3D.txt"):
        number, *position = line.split()[:4]
        positions[number] = [float(word) for word in position]
    lines = rows(model / "images.txt")
    # Two lines per photograph: its pose, and its x, y and point numbers.
    for pose, seen in zip(lines[::2], lines[1::2], strict=False):
        words = pose.split(maxsplit=9)
        if words[9] != photo_name:
            continue
        qw, qx, qy, qz, _, _, tz = (float(word) for word in words[1:8])
        # The last row of the rotation from the world to the camera.
        forward = [2 * (qx * qz - qw * qy), 2 * (qy * qz + qw * qx), 1 - 2 * (qx**2 + qy**2)]
        points = []
        words = seen.split()
        for x, y, number in zip(words[::3], words[1::3], words[2::3], strict=True):
            if number in positions:
                depth = np.dot(forward, positions[number]) + tz
                points.append((float(x) - 0.5, float(y) - 0.5, depth))
        return np.array(points)
    raise SystemExit(f"{model / 'images.txt'}: has no photograph {photo_name}.")


def scatter(points: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Write points to a map, 0 where there is none."""
    height, width = shape
    x, y = np.rint(points[:, :2]).astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height) & (points[:, 2] > 0)
    depth = np.zeros(shape, np.float32)
    depth[y[inside], x[inside]] = points[inside, 2]
    return depth


def main(model: Path, photo_path: Path, output: Path) -> None:
    """Complete the points of one photograph and write the map."""
    photo = io.read(photo_path)
    points = scatter(read_points(model, photo_path.name), photo.shape[:2])
    io.write(output, bilateral.tasks.complete_depth(points, photo, kind="depth"))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*map(Path, sys.argv[1:]))
