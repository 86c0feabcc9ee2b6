"""Put the messages of the library into the words of the command line."""

import re

COMMAND_OF_FUNCTION = {
    "refine_depth": "depth",
    "superres_depth": "superres",
    "stereo_depth": "stereo",
    "align_depth": "align",
    "refine_segmentation": "segment",
    "colorize": "colorize",
    "cut_out": "cut",
    "defocus": "defocus",
    "solve": "solve",
}
_CALL = re.compile(
    rf"\b(?:bilateral\.)?(?:tasks\.)?({'|'.join(COMMAND_OF_FUNCTION)})\(([^()]*)\)"
    rf"|\b(?:bilateral\.|tasks\.)+({'|'.join(COMMAND_OF_FUNCTION)})\b"
)
_KEYWORD = re.compile(r"\b([a-z][a-z_]*)=((?:'[^']*'|\"[^\"]*\"|[\w.+-]*\w)+)")


def command_line_words(text: str) -> str:
    """Replace functions by commands, and keyword arguments by options.

    Examples
    --------
    >>> command_line_words("Call tasks.superres_depth, or set invalid=0.")
    'Call bilateral superres, or set --invalid 0.'
    >>> command_line_words("The order is colorize(gray, scribbles).")
    'The order is bilateral colorize GRAY SCRIBBLES.'
    """
    return _KEYWORD.sub(_option, _CALL.sub(_command, text))


def zeros_warning(fraction: float) -> str:
    """Say that this fraction of the known pixels of a depth map is 0 and may be unknown."""
    return (
        f"0 counts as a depth in {100 * fraction:.2g} % of the known pixels. If 0 means unknown, "
        f"add --invalid 0; if it is a depth, --invalid nan."
    )


def _command(match: re.Match[str]) -> str:
    name, arguments, plain_name = match.groups()
    words = ["bilateral", COMMAND_OF_FUNCTION[name or plain_name]]
    for argument in filter(None, (text.strip() for text in (arguments or "").split(","))):
        words.append(argument if "=" in argument else argument.upper())
    return " ".join(words)


def _option(match: re.Match[str]) -> str:
    name, value = match.groups()
    return f"--{name.replace('_', '-')} {value.strip(chr(39) + chr(34))}"
