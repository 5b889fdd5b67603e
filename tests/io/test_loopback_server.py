"""The web server of the playground: it answers odd requests, serves one folder, and to this machine only."""

import contextlib
import socket
import threading

import pytest

from simllm.io import loopback_server


@pytest.fixture
def port(tmp_path):
    """The port of a running server for the folder `served`, beside which there is a secret."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "served" / "inner").mkdir(parents=True)
    (tmp_path / "served" / "index.html").write_text("<p>page</p>")
    (tmp_path / "served" / "large").write_bytes(bytes(50_000_000))
    (tmp_path / "served" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "served" / "outside").symlink_to(tmp_path)
    with loopback_server.serving(tmp_path / "served", 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def answer(port, request):
    """Send a request, and return the whole answer."""
    with connect(port) as client:
        with contextlib.suppress(ConnectionError):  # the server may refuse a long request before its end
            client.sendall(request)
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := client.recv(1 << 16):
                parts.append(part)
    return b"".join(parts)


def get(port, path, headers="", method="GET"):
    return answer(port, f"{method} {path} HTTP/1.1\r\n{headers}\r\n".encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("path", ["/", "/index.html", "/?query", "/inner/../index.html", "//index.html"])
def test_serves_its_files(port, path):
    assert get(port, path).startswith(b"HTTP/1.0 200 ")
    assert b"<p>page</p>" in get(port, path)


@pytest.mark.parametrize(
    "path",
    [
        "/.%00./", "/%00", "/index.html%00", "/../secret", "/%2e%2e/secret", "/..%2fsecret",
        "/%2e%2e%2fsecret", "/..%5csecret", "//secret", "/inner/../../secret", "/link", "/outside/secret",
        "/inner", "/inner/", "/%ed%a0%80", "/%ff", "/" + "n" * 5000, "/" + "n/" * 5000,
        "http://elsewhere/secret", "*", "/none",
    ],
    ids=lambda path: path[:30],
)  # fmt: skip
def test_serves_nothing_else(port, path, capfd):
    for method in ("GET", "HEAD"):
        got = get(port, path, method=method)
        assert got.startswith((b"HTTP/1.0 404 ", b"HTTP/1.0 301 ")), got[:100]
        assert not got.endswith(b"secret")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\nx", b"501"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", b"431"),
        (b"GET /" + b"n" * 100_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"\x00\xff\x16\x03\x01 nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nRange: bytes=5-1\r\nIf-Modified-Since: never\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nHost: attacker.example\r\n\r\n", b"403"),
        (b"GET / HTTP/1.1\r\nHost: localhost.attacker.example\r\n\r\n", b"403"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n", b"403"),
        (b"HEAD / HTTP/1.1\r\nHost: attacker.example\r\n\r\n", b"403"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8643\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nHost: LocalHost\r\n\r\n", b"200"),
    ],
)
def test_odd_requests_get_a_status(port, request_, status, capfd):
    head = answer(port, request_).split(b"\r\n")[0]
    assert head.split(b" ")[1:2] == [status] or status in head, head
    assert get(port, "/").startswith(b"HTTP/1.0 200 ")
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_many_silent_clients_and_clients_that_go_away_disturb_nobody(port, capfd):
    silent = [connect(port) for _ in range(300)]
    for client in silent[:100]:
        client.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset on close
        client.close()
    assert b"<p>page</p>" in get(port, "/")
    for client in silent[100:]:
        client.close()
    assert capfd.readouterr() == ("", "")


def test_a_client_that_stays_silent_is_dropped(port, monkeypatch):
    monkeypatch.setattr(loopback_server._Handler, "timeout", 0.1)
    with connect(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX-")
        assert client.recv(100) == b""


def test_only_this_machine_can_connect(tmp_path):
    with loopback_server.serving(tmp_path, 0) as server:
        assert server.server_address[0] == "127.0.0.1"
