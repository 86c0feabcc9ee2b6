"""Every public name has a page of the reference, and every link of a page has a target."""

import re
from pathlib import Path

import pytest

from test_api import API

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.is_relative_to(DOCS / "_build"))


def listed() -> set[str]:
    """Names of the tables of docs/api, with their module."""
    found = set()
    for page in DOCS.glob("api/*.rst"):
        text = page.read_text()
        module = re.search(r"currentmodule:: (\S+)", text)
        assert module is not None
        found |= {f"{module[1]}.{name}" for name in re.findall(r"^   (\w+)$", text, re.MULTILINE)}
    return found


def test_every_public_name_is_listed() -> None:
    public = {
        f"{module}.{name}"
        for module, table in API.items()
        for name, kind in table.items()
        if "." not in name and kind not in ("module", "str")
    }
    assert public == listed()


@pytest.mark.parametrize("page", PAGES, ids=[str(path.relative_to(DOCS)) for path in PAGES])
def test_links_have_targets(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        made_by_the_build = "gallery/" in link
        if not link.startswith(("http", "mailto")) and not made_by_the_build:
            assert (page.parent / link).exists(), link
