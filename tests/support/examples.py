"""Number of examples of a property test, scaled by the Hypothesis profile in use."""

from typing import Any

from hypothesis import settings


def examples(count: int, **options: Any) -> settings:
    """Draw `count` examples with the profile "full", proportionally fewer with "fast"."""
    share = settings.default.max_examples / settings.get_profile("full").max_examples
    return settings(max_examples=max(1, round(share * count)), **options)
