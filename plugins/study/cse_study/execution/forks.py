"""Processes that share what they import: forks of one that has imported what earlier ones did.

A fork ends as any process, and gives its memory back. It has imported modules and nothing else of
runs before it: what it computes is what a process of its own computes.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from tempfile import TemporaryFile
from typing import IO, Any

_PR_SET_PDEATHSIG = 1
_MAX_BYTES = 2**17
"""Of the words of a command."""


def end_with(parent: int) -> None:
    """Ask the system for SIGTERM when the parent ends; where it cannot, the child lives on."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)


def serve(descriptor: int) -> list[str]:
    """Fork for each message with words on a socket, and return the words in the fork.

    The process itself ends here, when nobody asks any more. With the words come stdout, stderr and
    a lock that the fork keeps; the answers are the fork's number and its exit code.
    """
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks for forks ends them
    asked, server = socket.socket(fileno=descriptor), os.getpid()
    while threading.active_count() == 1:  # a fork would have none of the others
        message, descriptors, *_ = socket.recv_fds(asked, _MAX_BYTES, 3)
        if not message:
            break
        with TemporaryFile("w+", encoding="utf-8") as names:
            if not (fork := os.fork()):
                asked.close()
                end_with(server)
                signal.signal(signal.SIGINT, interrupt)
                for stream, place in zip(descriptors, (1, 2), strict=False):
                    os.dup2(stream, place)
                    os.close(stream)
                atexit.register(_list_imported, os.fdopen(os.dup(names.fileno()), "w"))
                words: list[str] = json.loads(message)
                return words
            for number in descriptors:
                os.close(number)
            asked.send(str(fork).encode())
            code = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
            asked.send(str(code).encode())
            names.seek(0)
            for name in names.read().split():
                with suppress(Exception):  # such as one that only its own package can import
                    import_module(name)
            gc.freeze()  # its pages stay those of all forks
    sys.exit()


def _list_imported(names: IO[str]) -> None:
    """Write what this process has imported; nothing where a GPU is, which survives no fork."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.accelerator.is_available():
        with names:
            names.write("\n".join(sys.modules))


class Fork:
    """A fork of a server, with what ``subprocess.Popen`` has of a process."""

    def __init__(self, number: int, out: int, answers: socket.socket) -> None:
        self.returncode: int | Any = None
        self._number, self._out, self._answers = number, out, answers

    def communicate(self) -> tuple[bytes, None]:
        """Wait for its end, and return what it printed on stdout."""
        code = b""
        with os.fdopen(self._out, "rb") as out:
            said = out.read()
        with suppress(OSError):  # the server is gone, and its forks with it
            code = self._answers.recv(_MAX_BYTES)
        self.returncode = int(code or -signal.SIGKILL)
        return said, None

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self._number, number)


class Server:
    """A process that forks, one fork at a time; it ends with the thread that started it.

    It is closed when the object goes.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._asks, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        nothing = subprocess.DEVNULL
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [*command, str(number)], stdin=nothing, stdout=nothing, stderr=nothing, env=env,
                pass_fds=(number,),
            )  # fmt: skip

    def fork(self, words: Sequence[str], said: IO[bytes], lock: int) -> Fork:
        """Fork for the words of ``child``.

        Args:
            words: What to do.
            said: The file that the fork's stderr is added to.
            lock: Descriptor of a lock, which the fork keeps as long as it lives.

        Raises:
            OSError: If the server is gone.
        """
        out, theirs = os.pipe()
        try:
            streams = [theirs, said.fileno(), lock]
            socket.send_fds(self._asks, [json.dumps(words).encode()], streams)
            if not (number := self._asks.recv(_MAX_BYTES)):
                raise BrokenPipeError
        except OSError:
            os.close(out)
            raise
        finally:
            os.close(theirs)
        return Fork(int(number), out, self._asks)

    def close(self) -> None:
        """End the process, whose forks have ended."""
        self._asks.close()
        self._process.kill()
        self._process.wait()

    __del__ = close
