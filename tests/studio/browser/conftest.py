"""Fixtures: one browser and one studio for all tests, a page for each."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright", reason="browser tests need playwright")
    pytest.importorskip("uvicorn", reason="the studio needs uvicorn")
    from support.browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    pytest.importorskip("uvicorn", reason="the studio needs uvicorn")
    from support.studio import running

    with running() as server:
        yield server


@pytest.fixture
def new_page(browser: Any, server: Any) -> Iterator[Callable[..., Any]]:
    """Open pages, each in its own window of the browser; no page may have an error."""
    from support.browser import StudioPage

    contexts, pages = [], []

    def open_page(ratio: float = 1, scheme: str = "dark", **options: Any) -> Any:
        size = options.pop("viewport", {"width": 1280, "height": 800})
        context = browser.new_context(
            viewport=size,
            device_scale_factor=ratio,
            color_scheme=scheme,
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        pages.append(StudioPage(context, server))
        return pages[-1]

    yield open_page
    errors = [error for page in pages for error in page.errors]
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    return new_page()
