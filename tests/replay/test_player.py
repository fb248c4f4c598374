"""A recorded engine behind HTTP: the page of the moment, and a closed port where there was no engine."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from inferwatch.replay.player import Player
from inferwatch.replay.recording import Page, Recording
from sim.server import free_port


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """First page, a gap after 0.2 s, second page 0.4 s later."""
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{name} 1\n")
    return Recording(
        "r",
        (Page(0.0, tmp_path / "one"), Page(0.2, None), Page(0.6, tmp_path / "two")),
        version="0.32.0",
    )


async def test_pages_follow_each_other_and_a_gap_refuses(recording: Recording) -> None:
    """Before play the first page stands; after it the second; between them nothing listens."""
    port = free_port("127.0.0.1")
    player = Player(recording, "127.0.0.1", port)
    url = f"http://127.0.0.1:{port}"
    await player.open()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        try:
            async with session.get(f"{url}/metrics") as answer:
                assert await answer.text() == "one 1\n"
            async with session.get(f"{url}/version") as answer:
                assert await answer.json() == {"version": "0.32.0"}
            playing = asyncio.create_task(player.play())
            refused = False
            while not playing.done():
                try:
                    async with session.get(f"{url}/metrics") as answer:
                        assert await answer.text() in ("one 1\n", "two 1\n")
                except aiohttp.ClientConnectionError:
                    refused = True
                await asyncio.sleep(0.02)
            await playing
            assert refused
            async with session.get(f"{url}/metrics") as answer:
                assert await answer.text() == "two 1\n"
        finally:
            await player.close()


async def test_an_unknown_version_is_not_made_up(tmp_path: Path) -> None:
    """/version answers 404 where the recording has none, so that the exporter says unknown."""
    (tmp_path / "one").write_text("one 1\n")
    port = free_port("127.0.0.1")
    player = Player(
        Recording("r", (Page(0.0, tmp_path / "one"), Page(1.0, tmp_path / "one"))), "127.0.0.1", port
    )
    await player.open()
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/version") as answer,
        ):
            assert answer.status == 404
    finally:
        await player.close()
