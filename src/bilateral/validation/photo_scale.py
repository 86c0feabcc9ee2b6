"""Check the scale of floating-point photographs, whose white is expected at 1."""

LOWEST, HIGHEST = -0.5, 1.5
"""Values of a floating-point photograph with white at 1. Resampling overshoots by less."""

_WHITES = (255, 1023, 4095, 16383, 65535)
"""White of integers with 8, 10, 12, 14 and 16 bits."""
_BRIGHT = 10.0
"""Values up to this may be highlights of a photograph with white at 1."""
_OVERSHOOT = 1.1
"""Resampling raises values to at most this multiple of white."""


def photo_range(name: str, low: float, high: float, has_parameter: bool = True) -> None:
    """Raise if the lowest and the highest value of a photograph contradict a white of 1.

    `has_parameter` tells whether the function has `reference_max`.
    """
    if low >= LOWEST and high <= HIGHEST:
        return
    white = next((white for white in _WHITES if high <= _OVERSHOOT * white), high)
    if -low > high / 4:
        came, remedy, option = f"down to {low:.6g}", "Undo the normalization of a network", ""
    elif high <= _BRIGHT:
        came, remedy, option = f"up to {high:.6g}", "Divide it by its white", ""
    else:
        came, remedy = f"up to {high:.6g}", f"Divide it by {white:.6g}"
        option = f"reference_max={white:.6g}, or "
    options = f", or give {option}reference_max=1.0 to keep the scale" if has_parameter else ""
    raise ValueError(
        f"{name}: expected floating-point values from 0 to 1, got values {came}. {remedy}{options}."
    )
