"""Answer an unknown option or command with our name for it."""

import difflib
from collections.abc import Iterable, Mapping

from bilateral.cli.wording import COMMAND_OF_FUNCTION

OPTIONS = {
    "--smoothness": "lam lambda lmbda lamb regularization reg alpha",
    "--sigma-xy": "sigma-spatial sigma-space sigma-s sigma-x sigma-y sigma-pixel radius",
    "--sigma-luma": "sigma-l sigma-range sigma-r sigma-color sigma-colour sigma-intensity",
    "--sigma-chroma": "sigma-uv sigma-u sigma-v sigma-c",
    "--sigma-t": "sigma-time sigma-temporal sigma-frames",
    "--max-iterations": "num-iter num-iters n-iter n-iters iters iter max-iter max-iters maxiter "
    "cg-maxiter num-iterations iterations steps",
    "--iterations": "num-iter num-iters n-iter n-iters iters iter max-iter num-iterations",
    "--tolerance": "tol max-tol cg-tol eps epsilon rtol",
    "--max-disparity": "max-disp maxdisp num-disparities ndisp disparities",
    "--window": "window-size block-size patch-size kernel-size",
    "--factor": "scale-factor upscale upsample ratio",
    "--focus": "focus-depth focus-distance focal-distance focal-plane",
    "--aperture": "f-number fstop f-stop strength blur-radius",
    "--invalid": "nodata no-data invalid-value ignore-value hole-value missing unknown",
    "--depth-scale": "depth-factor depth-unit depth-units units scale-depth",
    "--reference-max": "white max-value",
    "--confidence": "weights weight conf confidence-map",
    "--truth": "gt ground-truth groundtruth target-truth",
    "--output": "out outfile outdir out-dir output-dir output-file output-folder dest result",
    "--force": "overwrite replace yes",
    "--skip-existing": "resume continue no-clobber skip",
    "--jobs": "threads num-threads n-jobs nproc parallel",
    "--workers": "num-workers n-workers processes num-processes",
    "--scheduler": "dask scheduler-address scheduler-file cluster",
    "--shard": "split partition chunk",
    "--manifest": "log journal",
    "--pair": "match pairing pairs associations assoc pair-by",
    "--dtype": "type data-type bits depth-type",
    "--format": "ext extension suffix output-format",
    "--preview": "colormap vis visualize viz",
    "--report": "html",
    "--quiet": "silent no-progress",
    "--limit": "max-size max-memory",
}  # fmt: skip
"""Names of other programs and libraries for each option."""
COMMANDS = {
    "depth": "refine denoise fill complete inpaint",
    "superres": "upsample upscale enlarge super-resolution sr",
    "colorize": "colourize colorise colourise color colour",
    "segment": "segmentation mask labels crf",
    "cut": "cutout matte matting extract grabcut trimap alpha",
    "stereo": "disparity match matching",
    "align": "metric rescale scale-shift monocular mono",
    "defocus": "bokeh blur refocus",
    "solve": "smooth filter run bilateral",
    "info": "version about",
    "studio": "gui ui web app serve editor",
}
"""Names of other programs and libraries for each command."""


def option_hint(unknown: str, command: str, options: Mapping[str, Iterable[str]]) -> str:
    """Return which option an unknown one may stand for, or an empty text.

    Parameters
    ----------
    unknown : str
        The option, with its dashes.
    command : str
        Name of the command.
    options : dict
        Options of each command.
    """
    name = _plain(unknown)
    own = set(options.get(command, ()))
    meant = [ours for ours, others in OPTIONS.items() if name in (_plain(ours), *others.split())]
    known = [ours for ours in (f"--{name}", *meant) if ours in own]
    known = known or difflib.get_close_matches(f"--{name}", sorted(own), 2, 0.75)
    if known:
        return f"Did you mean {' or '.join(dict.fromkeys(known))}?"
    for ours in dict.fromkeys((f"--{name}", *meant)):
        commands = [other for other, theirs in options.items() if ours in set(theirs)]
        if commands:
            return f"{ours} is an option of {', '.join(commands)}, not of {command}."
    return ""


def command_hint(unknown: str, commands: Iterable[str]) -> str:
    """Return which command an unknown one may stand for, or an empty text."""
    name, names = _plain(unknown), list(commands)
    meant = [ours for ours, others in COMMANDS.items() if name in others.split()]
    meant += [ours for function, ours in COMMAND_OF_FUNCTION.items() if name == _plain(function)]
    meant = meant or difflib.get_close_matches(name, names, 2, 0.6)
    return f"Did you mean {' or '.join(dict.fromkeys(meant))}?" if meant else ""


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-").lower()
