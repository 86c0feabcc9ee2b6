"""Who may use the studio: the right host, origin and token, and nobody else."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest

pytest.importorskip("starlette", reason="the studio needs starlette")
pytest.importorskip("uvicorn", reason="the studio needs uvicorn")

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from bilateral.studio.server import PortError, Server
from support.studio import Page, cookie_of, running


@pytest.fixture(scope="module")
def server():
    with running(photo=("photo.png", b"bytes of a file")) as server:
        yield server


def base(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


def test_it_listens_on_this_machine_only(server: Server) -> None:
    assert server._socket.getsockname()[0] == "127.0.0.1"


def test_the_token_becomes_a_strict_cookie(server: Server) -> None:
    answer = httpx.get(server.url)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "samesite=strict" in cookie
    assert "httponly" in cookie
    with httpx.Client(base_url=base(server), headers={"Cookie": cookie_of(server)}) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert "<title>bilateral studio</title>" in page.text
        assert client.get("/photo").content == b"bytes of a file"


def test_two_studios_have_other_tokens() -> None:
    with running() as one, running() as two:
        assert urlsplit(one.url).query != urlsplit(two.url).query
        cookie = cookie_of(one).replace(str(one.port), str(two.port))
        assert httpx.get(base(two), headers={"Cookie": cookie}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/main.js", "/photo", "/?token=", "/?token=x", "/nothing"])
def test_without_the_token_nothing_is_sent(server: Server, path: str) -> None:
    answer = httpx.get(base(server) + path)
    assert answer.status_code == 403
    assert "bilateral studio" in answer.text
    assert httpx.get(base(server) + path, headers={"Cookie": "a=b; c"}).status_code == 403
    other = {"Cookie": f"bilateral-studio-{server.port}=wrong"}
    assert httpx.get(base(server) + path, headers=other).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example", ""]
)
def test_a_wrong_host_is_refused(server: Server, host: str) -> None:
    headers = {"Host": host, "Cookie": cookie_of(server)}
    answer = httpx.get(server.url, headers=headers)
    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers


def test_localhost_is_a_right_host(server: Server) -> None:
    headers = {"Host": f"localhost:{server.port}", "Cookie": cookie_of(server)}
    assert httpx.get(base(server), headers=headers).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1"])
def test_a_wrong_origin_is_refused(server: Server, origin: str) -> None:
    cookie = cookie_of(server)
    answer = httpx.get(base(server), headers={"Origin": origin, "Cookie": cookie})
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    url = f"ws://127.0.0.1:{server.port}/socket"
    for options in (
        {"origin": origin, "additional_headers": {"Cookie": cookie}},
        {"additional_headers": {"Cookie": cookie}},  # no browser: no origin
        {"origin": base(server)},
        {"origin": base(server), "additional_headers": {"Cookie": "bilateral-studio=1"}},
        {"origin": base(server), "additional_headers": {"Cookie": cookie, "Host": "evil.example"}},
    ):
        with pytest.raises(InvalidStatus, match=r"40[03]"), connect(url, **options):
            pass


def test_every_answer_has_the_headers_of_a_safe_page(server: Server) -> None:
    cookie = {"Cookie": cookie_of(server)}
    for answer in (httpx.get(base(server)), httpx.get(base(server), headers=cookie)):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


def test_the_page_has_no_inline_script_or_style_and_needs_no_other_host(server: Server) -> None:
    cookie = {"Cookie": cookie_of(server)}
    page = httpx.get(base(server), headers=cookie).text
    assert "<style" not in page
    assert " style=" not in page
    assert " on" not in [part[:3] for part in page.split("<")]
    assert "//" not in page.replace("<!doctype", "")
    for name in ("main.js", "studio.js", "style.css"):
        text = httpx.get(f"{base(server)}/{name}", headers=cookie).text
        assert "https://" not in text
        assert "http://" not in text


def test_the_page_is_light(server: Server) -> None:
    total = sum(len(content) for content, _ in server.studio._files.values())
    assert 20_000 < total <= 200_000


@pytest.mark.parametrize(
    "path", ["/../app.py", "/..%2fapp.py", "/static/main.js", "/%2e%2e/app.py", "/etc/passwd"]
)
def test_no_path_leads_to_other_files(server: Server, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        raw.sendall(f"{request}Cookie: {cookie_of(server)}\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    assert b" 404 " in answer.split(b"\r\n", 1)[0]


def test_other_methods_are_refused(server: Server) -> None:
    headers = {"Cookie": cookie_of(server), "Origin": base(server)}
    for method in ("POST", "PUT", "DELETE"):
        assert httpx.request(method, base(server), headers=headers).status_code == 405


def test_a_port_that_is_taken_is_named(server: Server) -> None:
    with pytest.raises(PortError, match=f"--port: {server.port} cannot be used"):
        Server(server.port)


def test_a_page_can_connect(server: Server) -> None:
    with Page(server) as page:
        assert page.hello.fields["photo"] == "photo.png"
        assert {e["name"] for e in page.hello.fields["examples"]} >= {"room", "gray"}
