"""Draw the figures of the pages with matplotlib."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from PIL import Image

from benchmarks.common import Array

mpl.use("Agg")
mpl.rcParams.update({"svg.hashsalt": "bilateral", "svg.fonttype": "none"})  # reproducible files
mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True})
COLOURS = ("#9a9a9a", "#56b4e9", "#e69f00", "#0072b2", "#d55e00", "#009e73", "#cc79a7")


def save(figure: Figure, file: Path) -> None:
    if file.suffix == ".svg":
        figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    else:  # few colours make small files
        memory = BytesIO()
        figure.savefig(memory, bbox_inches="tight", dpi=90, format="png")
        picture = Image.open(memory).convert("RGB")
        picture.quantize(160, dither=Image.Dither.NONE).save(file, optimize=True)
    plt.close(figure)


def convergence(
    results: dict[str, Any], kinds: Sequence[str], methods: Sequence[str], file: Path
) -> None:
    """Draw medians as lines, and the 25th to 75th percentiles as bands."""
    figure, axes = plt.subplots(1, len(kinds), figsize=(9, 3.6), sharey=True)
    floor, ticks = 1e-7, (0.5, 1, 2, 5, 10, 25, 50, 100, 200)
    for axis, kind in zip(axes, kinds, strict=True):
        for name, colour in zip(methods, COLOURS, strict=False):
            row = results[kind][name]
            steps = np.maximum(np.array(row["steps"], float), 0.5)  # the start goes left of step 1
            low, median, high = (np.maximum(row[k], floor) for k in ("low", "median", "high"))
            axis.fill_between(steps, low, high, color=colour, alpha=0.25, lw=0)
            axis.plot(steps, median, "--" if "flat" in name else "-", c=colour, label=name, lw=1.6)
        axis.set(xscale="log", yscale="log", xlim=(0.5, 200), ylim=(floor, 1.5))
        axis.set_xticks(ticks, ["start", *(f"{tick:g}" for tick in ticks[1:])])
        axis.minorticks_off()
        axis.set(xlabel="PCG steps", title=f"{kind} data")
    axes[0].set_ylabel("loss, 1 at the worst start")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    save(figure, file)


def trade_off(
    points: Sequence[tuple[str, float, float, str]], labels: tuple[str, str], file: Path
) -> None:
    """Draw error against time; a point is (name, seconds, error, "ours", "peer" or "paper")."""
    markers = {"ours": ("o", COLOURS[4], "bilateral, measured")}
    markers |= {"peer": ("s", COLOURS[3], "others, measured here")}
    markers |= {"paper": ("^", COLOURS[0], "the paper's, on its workstation")}
    figure, axis = plt.subplots(figsize=(7.5, 5.4))
    for kind, (marker, colour, label) in markers.items():
        x, y = ([point[i] for point in points if point[3] == kind] for i in (1, 2))
        axis.scatter(x, y, marker=marker, color=colour, label=label if x else None, s=28)
    axis.set(xscale="log", yscale="log", xlabel=labels[0], ylabel=labels[1])
    axis.margins(x=0.16, y=0.08)
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("{x:g}")
    figure.canvas.draw()
    _annotate(axis, [(name, x, y) for name, x, y, _ in points])
    axis.legend(loc="upper right")
    save(figure, file)


def _annotate(axis: Axes, points: Sequence[tuple[str, float, float]]) -> None:
    """Write names to the right of points, from above, each below the names that it would cover."""
    scale = 72 / axis.figure.get_dpi()  # to points of 1/72 inch
    placed: list[tuple[float, float, float]] = []
    line = {"arrowstyle": "-", "lw": 0.5, "color": "gray", "shrinkA": 0, "shrinkB": 2}
    options: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "va": "center"}
    for name, x, y in sorted(points, key=lambda point: -point[2]):
        left, height = scale * axis.transData.transform((x, y)) + (5, 0)
        right, at = left + 3.7 * len(name) + 3, height
        for other_left, other_right, other in placed:
            if left < other_right and other_left < right:
                at = min(at, other - 8)
        placed.append((left, right, at))
        moved = line if at < height else None
        axis.annotate(name, (x, y), xytext=(5, at - height), arrowprops=moved, **options)


def bars(groups: dict[str, dict[str, tuple[float, float | None]]], label: str, file: Path) -> None:
    """Draw a bar per method in each group, with a mark at the paper's value."""
    figure, axes = plt.subplots(1, len(groups), figsize=(9, 3.4), sharey=True, squeeze=False)
    for axis, (group, rows) in zip(axes[0], groups.items(), strict=True):
        at = np.arange(len(rows))
        solver = [name.startswith(("RBS", "refine")) for name in rows]
        colours = [COLOURS[4] if ours else COLOURS[1] for ours in solver]
        axis.barh(at, [ours for ours, _ in rows.values()], color=colours, height=0.65)
        marks = [(paper, i) for i, (_, paper) in enumerate(rows.values()) if paper is not None]
        if marks:
            axis.plot(*zip(*marks, strict=True), "k|", ms=14, mew=2)
        axis.axvline(1, color="black", lw=0.8, ls=":")
        axis.set(title=group, xlabel=label)
        axis.set_yticks(at, list(rows))
        axis.grid(axis="y", visible=False)
    axes[0][0].invert_yaxis()
    handles = [
        Patch(color=COLOURS[4], label="bilateral solver"),
        Patch(color=COLOURS[1], label="filters"),
        Line2D([], [], color="black", marker="|", ms=10, mew=2, ls="", label="in the paper"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    save(figure, file)


def panels(rows: Sequence[Sequence[tuple[str, Array]]], file: Path, width: float = 9) -> None:
    """Show titled pictures row by row; a row's maps share the range of its first map."""
    columns = max(len(row) for row in rows)
    height, wide = rows[0][0][1].shape[:2]
    size = (width, len(rows) * (width / columns * height / wide + 0.25))
    figure, axes = plt.subplots(len(rows), columns, figsize=size, squeeze=False)
    for line, row in zip(axes, rows, strict=True):
        maps = [picture for _, picture in row if picture.ndim == 2]
        low, high = np.nanpercentile(maps[0], [1, 99]) if maps else (0, 1)
        for axis in line:
            axis.set_axis_off()
        for axis, (title, picture) in zip(line, row, strict=False):
            options = {"cmap": "magma", "vmin": low, "vmax": high} if picture.ndim == 2 else {}
            axis.imshow(picture, **options)
            axis.set_title(title, fontsize=8)
    figure.tight_layout(pad=0.4)
    save(figure, file)
