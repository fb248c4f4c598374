"""A worker's files on its own host -> the same files in the master's folder, over Locust's messages. Runs on gevent.

One piece is under way at a time, so that neither side holds more than that, whatever the size of the files. Where a
piece goes is the master's own knowledge: the worker's number and one of three kinds, never a name that was sent.
"""

import logging
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gevent.event import AsyncResult

from loadtests.recorder_files import clock_file, health_file, records_file

PIECE_BYTES = 1024 * 1024
_PIECE, _GOT = "file_piece", "file_got"
_PATIENCE_S = 30.0
_FILES: dict[str, Callable[[Path, int], Path]] = {
    "records": records_file,
    "health": health_file,
    "clock": clock_file,
}
_log = logging.getLogger(__name__)


def receive_files(runner: Any, folder: Path) -> None:
    """On a master: keep what workers send in *folder*."""

    def came(environment: Any, msg: Any, **_: Any) -> None:
        if msg.node_id not in runner.clients:
            _log.error("a piece of a file came from %s, which is no worker of this run", msg.node_id)
            return
        failure = ""
        try:
            keep_piece(folder, runner.get_worker_index(msg.node_id), msg.data)
        except (OSError, ValueError, KeyError, TypeError, zlib.error) as error:
            failure = f"{type(error).__name__}: {error}"
        runner.send_message(_GOT, {"failure": failure}, client_id=msg.node_id)

    runner.register_message(_PIECE, came)


def keep_piece(folder: Path, worker: int, piece: dict[str, Any]) -> None:
    """Append one piece to the file it is of; raises ValueError when it does not fit to what is there."""
    packed = zlib.decompressobj()
    data = packed.decompress(piece["data"], PIECE_BYTES)
    if not packed.eof and packed.decompress(packed.unconsumed_tail, 1):
        raise ValueError(f"worker {worker}: a piece is larger than {PIECE_BYTES} bytes")
    path = _FILES[piece["kind"]](folder, worker)
    with path.open("ab") as file:
        if file.tell() != piece["at"]:
            raise ValueError(f"{path}: holds {file.tell()} bytes, the piece is for byte {piece['at']}")
        file.write(data)


class FileSender:
    """On a worker with a folder of its own."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._got: AsyncResult[dict[str, Any]] = AsyncResult()
        runner.register_message(_GOT, lambda msg, **_: self._got.set(msg.data))

    def send(self, folder: Path, worker: int) -> None:
        """Send worker number *worker*'s files; raises OSError when the master cannot keep them, gevent.Timeout when
        it does not answer."""
        for kind, named in _FILES.items():
            at = 0
            with named(folder, worker).open("rb") as file:
                while data := file.read(PIECE_BYTES):
                    self._send({"kind": kind, "at": at, "data": zlib.compress(data, 1)})
                    at += len(data)

    def _send(self, piece: dict[str, Any]) -> None:
        self._got = AsyncResult()
        self._runner.send_message(_PIECE, piece)
        if failure := self._got.get(timeout=_PATIENCE_S)["failure"]:
            raise OSError(f"the master could not keep the records: {failure}")
