"""Addresses where no cluster of Ray is: errors come within seconds, whatever is there."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.llm.ray import cluster
from relax_mlir.llm.ray.cluster import connected
from relax_mlir.tools.relax_llm import main


@contextmanager
def server(answer: bytes | None):
    """A server that says this to whoever connects, or nothing; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connections = []

        def work():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connections.append(connection)
                with suppress(OSError):  # whoever connected has gone
                    if answer is not None:
                        connection.sendall(answer)
                        connection.shutdown(socket.SHUT_WR)

        threading.Thread(target=work, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        for connection in connections:
            connection.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def refusal(address: str) -> str:
    begin = time.monotonic()
    with pytest.raises(ExecutionError) as caught, connected(address):
        pass
    assert time.monotonic() - begin < 5
    message = str(caught.value)
    assert message.startswith(f"cannot reach Ray at '{address}': ")
    assert "expects a cluster, as `ray start --head`" in message
    return message


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nothing_listens(scheme):
    assert "connection refused" in refusal(f"{scheme}127.0.0.1:{free_port()}")
    assert "connection refused" in refusal(f"{scheme}[::ffff:127.0.0.1]:{free_port()}")


def test_names_that_there_are_not():
    refusal("no-such-host.invalid:6379")
    refusal(f"{'x' * 70}.example:6379")


@pytest.mark.parametrize(
    "answer", [b"", b"x", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n"]
)
def test_other_servers(answer):
    with server(answer) as address:
        assert "not Ray" in refusal(address)


def test_a_server_that_says_nothing(monkeypatch):
    monkeypatch.setattr(cluster, "PROBE_SECONDS", 0.2)
    with server(None) as address:
        assert "timed out" in refusal(address)


def test_the_address_of_the_environment(monkeypatch):
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ExecutionError, match=f"at '{address}': connection refused"):
        with connected("auto"):
            pass


@pytest.mark.parametrize(
    "address",
    ["", "nonsense", ":6379", "a:", "a:b", "http://a:1", "ray://", "a:1/x", "a:²", "a:123456"],
)
def test_what_is_no_address(address):
    with (
        pytest.raises(UsageError, match="is no address of Ray; expects HOST:PORT"),
        connected(address),
    ):
        pass


def test_the_command_leaves_no_output(tmp_path, capsys):
    prompts, output = tmp_path / "prompts.jsonl", tmp_path / "out.jsonl"
    prompts.write_text('{"prompt": "hello"}\n')
    address = f"127.0.0.1:{free_port()}"
    command = ["batch", "smollm2", str(prompts), "-o", str(output), "--ray", address]
    assert main(command) == 1
    assert f"cannot reach Ray at '{address}'" in capsys.readouterr().err
    assert not output.exists()
    output.write_text('{"id": 7, "text": "kept"}\n')
    assert main(command) == 1
    assert output.read_text() == '{"id": 7, "text": "kept"}\n'
