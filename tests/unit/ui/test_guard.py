"""Who is let in, from where, and how much may be sent: each against the real server."""

from __future__ import annotations

import re
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from time import process_time
from urllib.parse import unquote

import pytest
from starlette.requests import Request

from pipeline.errors import ConfigError
from pipeline.ui import guard, routes
from pipeline.ui.desk import Desk
from pipeline.ui.pages import FormFields, WriteRoute, place
from pipeline.ui.server import ServerAddress, keys_for, listen
from tests.desks import PATIENCE, Served, serving
from tests.sample_runs import failed_run

#: What the write of these tests was given.
DONE: list[dict[str, str]] = []


def _note(desk: Desk, request: Request, form: FormFields) -> str:
    if form.get("refuse"):
        raise ConfigError("It is refused: sk-ant-secret123456.", code="refused", command="./pipeline.sh list")
    DONE.append(dict(form))
    return place("", {"q": form.get("text", "")[:100]})


@pytest.fixture(autouse=True)
def _written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the desk a write of the tests' own: "note"."""
    monkeypatch.setattr(routes, "WRITES", (*routes.WRITES, WriteRoute("note", _note, page="runs")))
    DONE.clear()


def raw(desk: Served, request: str) -> str:
    """What comes back for bytes as they are."""
    with socket.create_connection(("127.0.0.1", desk.port), PATIENCE) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        found = b""
        while b"\r\n\r\n" not in found and (more := connection.recv(65536)):
            found += more
        return found.decode("latin-1")


# --- hosts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1@evil.example", "0.0.0.0", "",
     "127.0.0.1:99999999", "[::1", "localhost:80:80", "evil.example:8484", "127.0.0.1,evil.example"],
)  # fmt: skip
def test_rebound_name_is_refused_before_anything_else(desk: Served, host: str) -> None:
    cookie = desk.cookie
    for path in ("/", "/healthz", "/static/desk.css", f"/?token={desk.token}", "/x/../api/v1/", "http://localhost/"):
        answer = raw(desk, f"GET {path} HTTP/1.1\nHost: {host}\nCookie: {cookie}\n\n")
        assert answer.startswith("HTTP/1.1 400"), answer


def test_request_without_a_host_or_with_two_is_refused(desk: Served) -> None:
    assert " 400 " in raw(desk, "GET / HTTP/1.0\n\n")[:20]
    assert " 400 " in raw(desk, "GET / HTTP/1.1\nHost: localhost\nHost: evil.example\n\n")[:20]


def test_own_names_are_answered_at_any_port(desk: Served) -> None:
    for host in ("127.0.0.1", "localhost:9000", "LOCALHOST", "[::1]:80"):
        assert desk.get("", {"Host": host}).status == 200


# --- the token ------------------------------------------------------------------------------------


def test_token_of_the_link_works_once_and_leaves_the_address(desk: Served) -> None:
    assert desk.ask("GET", "/").status == 403
    assert desk.ask("GET", "/?token=wrong").status == 403
    got = desk.ask("GET", f"/runs/x?at=7&token={desk.token}")
    assert (got.status, got.headers["location"]) == (303, "./x?at=7")
    cookie = got.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert desk.ask("GET", f"/?token={desk.token}").status == 403, "the link was used"
    assert desk.ask("GET", "/", {"Cookie": cookie.partition(";")[0]}).status == 200
    again = desk.ask("GET", f"/?token={desk.token}", {"Cookie": cookie.partition(";")[0]})
    assert (again.status, again.headers["location"]) == (303, "./"), "whoever is in may click the link again"


@pytest.mark.parametrize("last", ["%E2%82%AC", "a%0d%0aSet-Cookie:%20x", "a%3Fb", "a%23b"])
def test_link_to_any_path_leads_to_it(desk: Served, last: str) -> None:
    got = desk.ask("GET", f"/runs/{last}?token={desk.token}")
    assert got.status == 303
    assert unquote(got.headers["location"]) == f"./{unquote(last)}"
    assert got.headers["location"].isascii()


def test_every_path_needs_the_cookie_and_a_wrong_one_is_none(desk: Served) -> None:
    name, _, value = desk.cookie.partition("=")
    for path in ("/", "/api/v1/", "/api/v1/runs/x/events", "/runs/x", "/nothing"):
        for cookie in ("", f"{name}={value[:-1]}", f"{name}=", f"other={value}", f"{name}={value}x", "=;;=,\xe9"):
            assert desk.ask("GET", path, {"Cookie": cookie}).status == 403, (path, cookie)


def test_files_that_are_not_there_tell_nothing_of_runs(root: Path, desk: Served) -> None:
    run = failed_run(root)
    got = desk.ask("GET", "/static/nope")
    assert (got.status, got.headers["content-type"].partition(";")[0]) == (404, "text/plain")
    assert run not in got.text
    assert run in desk.get("nothing").text
    assert desk.get(f"runs/{run}/").status == 404, "it leads nowhere without the prefix of a proxy"


def test_tokens_are_compared_in_constant_time(desk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    whole = secrets.compare_digest

    def compare(given: bytes, wanted: bytes) -> bool:
        compared.append(given)
        return bool(whole(given, wanted))

    monkeypatch.setattr(secrets, "compare_digest", compare)
    desk.ask("GET", "/?token=guess")
    desk.ask("GET", "/", {"Cookie": f"desk-{desk.port}=guess"})
    assert compared == [b"guess", b"guess"]


def test_cookie_outlives_a_restart_of_the_server(root: Path) -> None:
    failed_run(root)
    with serving(f"files:{root}") as first:
        cookie = first.cookie
    at = ServerAddress(port=first.port)
    assert keys_for(at).value == cookie.partition("=")[2]
    listen(at).close()


# --- writes ---------------------------------------------------------------------------------------


def test_write_of_the_desks_own_page_is_done_and_leads_on(desk: Served) -> None:
    got = desk.post("note", {"text": "a b", "by": "M. Reid"})
    assert (got.status, got.headers["location"]) == (303, "./?q=a+b")
    assert DONE == [{"text": "a b", "by": "M. Reid"}]
    assert desk.post("note", [("run", "x")] * 20_001).status == 400
    assert desk.cookies["desk-name"] == "M.%20Reid"
    assert len(desk.post("note", {"by": "é" * 100_000}).headers["set-cookie"]) < 1000
    assert desk.post("note", {"text": "x"}, {"HX-Request": "true"}).headers["hx-redirect"] == "./?q=x"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "file://127.0.0.1"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": ""},
        {"Cookie": ""},
    ],
)
def test_write_of_another_site_is_refused(desk: Served, headers: dict[str, str]) -> None:
    assert desk.post("note", {"text": "x"}, headers).status == 403
    assert DONE == []


def test_write_that_does_not_say_where_it_comes_from_is_refused(desk: Served) -> None:
    own = {"Cookie": desk.cookie, "Content-Type": "application/x-www-form-urlencoded"}
    for more in ({}, {"Origin": desk.url[:-1]}, {"Sec-Fetch-Site": "same-origin"}):
        assert desk.ask("POST", "/note", own | more, b"text=x").status == 403
    assert DONE == []


def test_nothing_is_written_by_get_or_another_method(desk: Served) -> None:
    assert desk.get("note?text=x").status == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert desk.ask(method, "/note", {"Cookie": desk.cookie}).status == 405
    for path in {write.path for write in routes.WRITES} - {page.path for page in routes.PAGES}:
        assert desk.get(re.sub(r"{[^}]*}", "7", path)).status in (404, 405), path
    assert DONE == []


def test_refused_form_comes_again_with_what_was_typed_and_why(root: Path, desk: Served) -> None:
    failed_run(root)
    got = desk.post("note", {"refuse": "yes"})
    assert got.status == 400
    assert "It is refused: [key]." in got.text
    assert "./pipeline.sh list" in got.text
    assert "secret123456" not in got.text
    part = desk.post("note", {"refuse": "yes"}, {"HX-Request": "true"})
    assert (part.status, part.text.startswith('<hx-partial id="say"')) == (400, True)


def test_what_is_sent_is_bounded_whatever_its_length_says(desk: Served) -> None:
    own = {
        "Cookie": desk.cookie, "Origin": "http://localhost", "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/x-www-form-urlencoded",
    }  # fmt: skip
    large = {**own, "Host": "localhost", "Content-Length": str(guard.MOST_BYTES + 1)}
    assert desk.ask("POST", "/note", large).status == 413
    head = "".join(f"{name}: {value}\r\n" for name, value in own.items())
    with socket.create_connection(("127.0.0.1", desk.port), PATIENCE) as connection:
        begin = f"POST /note HTTP/1.1\r\nHost: localhost\r\n{head}Transfer-Encoding: chunked\r\n\r\n"
        connection.sendall(begin.encode())
        with suppress(ConnectionError):
            # Nobody reads them all.
            for _ in range(guard.MOST_BYTES // 65536 + 1):
                connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 413")
    assert DONE == []


def test_uploaded_file_is_its_text(desk: Served) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="by"\r\n\r\nA\xc3\xa9\r\n'
        b'--b\r\nContent-Disposition: form-data; name="text"; filename="c.csv"\r\nContent-Type: text/csv\r\n\r\n'
        b"\xef\xbb\xbfsubject,level\r\nmaths,n5\r\n\r\n--b--\r\n"
    )
    own = {"Cookie": desk.cookie, "Origin": desk.url[:-1], "Sec-Fetch-Site": "same-origin"}
    headers = own | {"Content-Type": "multipart/form-data; boundary=b"}
    assert desk.ask("POST", "/note", headers, body).status == 303
    assert DONE == [{"by": "Aé", "text": "subject,level\r\nmaths,n5\r\n"}]
    many = b"".join(b'--b\r\nContent-Disposition: form-data; name="x%d"\r\n\r\ny\r\n' % n for n in range(50_000))
    for broken in (body.replace(b"maths", b"\xff\xfe"), many, many[: guard.MOST_BYTES]):
        at = process_time()
        assert desk.ask("POST", "/note", headers, broken).status == 400
        assert process_time() - at < 2
    assert desk.ask("POST", "/note", headers, b"--b--").status == 303
    large = body.replace(b"maths", b"m" * 4_000_000)
    assert desk.ask("POST", "/note", headers, large).status == 303
    assert desk.ask("POST", "/note", own | {"Content-Type": "text/plain"}, b"text=x").status == 400


# --- answers --------------------------------------------------------------------------------------


def test_every_answer_carries_the_headers_that_guard_it(root: Path, desk: Served) -> None:
    failed_run(root)
    got = [desk.get(path) for path in ("", "nothing", "api/v1/", "static/desk.css", "healthz")]
    for answer in [
        *got,
        desk.ask("GET", "/"),
        desk.post("note", {"refuse": "1"}),
        desk.post("note", {}, {"Origin": ""}),
    ]:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; frame-ancestors 'none'")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "server" not in answer.headers
    assert {answer.headers["cache-control"] for answer in got} == {"no-store", "no-cache"}


def test_no_page_holds_script_or_style_of_its_own() -> None:
    for template in (Path(routes.__file__).parent / "templates").iterdir():
        text = template.read_text(encoding="utf-8")
        assert "<script>" not in text, template.name
        assert all(word not in text for word in ("<style", " style=", " onclick=", "hx-on", "javascript:", "| safe")), (
            template
        )


# --- elsewhere ------------------------------------------------------------------------------------


def test_other_machines_need_a_token_file(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "192.0.2.1", "::"):
        with pytest.raises(ConfigError, match="needs --token-file") as caught:
            keys_for(ServerAddress(host))
        assert caught.value.code == "token_file_missing"
    short = tmp_path / "short"
    short.write_text("secret\n")
    for file, code in ((short, "token_too_short"), (tmp_path / "none", "token_unreadable")):
        with pytest.raises(ConfigError) as caught:
            keys_for(ServerAddress("0.0.0.0", token_file=str(file)))
        assert caught.value.code == code


def test_token_of_a_file_lets_in_as_often_as_it_is_given(root: Path, tmp_path: Path) -> None:
    file, token = tmp_path / "token", "t" * 24
    file.write_text(f"{token}\n")
    with serving(f"files:{root}", token_file=str(file), allowed_hosts=("desk.example",)) as desk:
        assert desk.token == ""
        for _ in range(2):
            got = desk.ask("GET", f"/?token={token}", {"Host": "desk.example"})
            assert (got.status, "Secure" in got.headers["set-cookie"]) == (303, False)
        over_https = desk.ask("GET", f"/?token={token}", {"Host": "desk.example", "X-Forwarded-Proto": "https"})
        assert over_https.headers["set-cookie"].endswith("; Secure")
        assert desk.ask("GET", "/api/v1/", {"Authorization": f"Bearer {token}"}).status == 200
        assert desk.ask("GET", "/api/v1/", {"Authorization": f"Bearer {token}x"}).status == 403
        assert desk.ask("GET", "/", {"Host": "other.example"}).status == 400


@pytest.mark.parametrize("strips", [True, False])
def test_desk_works_under_a_prefix_of_a_proxy(root: Path, strips: bool) -> None:
    run = failed_run(root)
    with serving(f"files:{root}", root_path="/x/desk", allowed_hosts=("school.example",)) as desk:
        prefix = "" if strips else "/x/desk"
        host = {"Host": "school.example"}
        got = desk.ask("GET", f"{prefix}/?token={desk.token}", host)
        assert (got.status, got.headers["location"]) == (303, "./")
        assert "Path=/x/desk/" in got.headers["set-cookie"]
        host["Cookie"] = got.headers["set-cookie"].partition(";")[0]
        page = desk.ask("GET", f"{prefix}/", host)
        links = [
            element.attributes[name]
            for element in page.page.all()
            for name in ("href", "src", "action")
            if name in element.attributes and element.tag != "use"
        ]
        assert f"./runs/{run}" in links
        assert all(link.startswith(("./", "../", "#", "?")) for link in links), links
        sent = {**host, "Content-Type": "application/x-www-form-urlencoded", "Origin": "https://school.example"}
        done = desk.ask("POST", f"{prefix}/note", {**sent, "Sec-Fetch-Site": "same-origin"}, b"text=x")
        assert (done.status, done.headers["location"]) == (303, "./?q=x")
        other = {**sent, "Origin": "http://school.example:81", "Sec-Fetch-Site": "same-origin"}
        assert desk.ask("POST", f"{prefix}/note", other, b"text=x").status == 403
