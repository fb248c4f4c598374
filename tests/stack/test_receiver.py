"""The local webhook receiver keeps every notification with the time it came, and refuses what is none."""

import json
import time
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from inferwatch.stack import receiver

BODY = {
    "version": "4",
    "status": "firing",
    "receiver": "page",
    "alerts": [{"status": "firing", "labels": {"alertname": "EngineDown"}}],
}


async def test_notifications_are_kept_in_order_with_their_time(tmp_path: Path) -> None:
    """Two calls give two lines; each carries the body and when it arrived."""
    file = tmp_path / "notifications.jsonl"
    before = time.time()
    async with TestClient(TestServer(receiver.application(file))) as client:
        for status in ("firing", "resolved"):
            answer = await client.post("/notify", json={**BODY, "status": status})
            assert answer.status == 204
    after = time.time()

    kept = receiver.read(file)
    assert [entry["status"] for entry in kept] == ["firing", "resolved"]
    assert before <= kept[0]["received_at"] <= kept[1]["received_at"] <= after
    assert kept[0]["alerts"] == BODY["alerts"]


@pytest.mark.parametrize("body", ["", "not json", "[]", '{"alerts": "none"}'])
async def test_what_is_no_notification_is_refused(tmp_path: Path, body: str) -> None:
    """A body that Alertmanager would not send is answered 400 and not kept."""
    file = tmp_path / "notifications.jsonl"
    async with TestClient(TestServer(receiver.application(file))) as client:
        answer = await client.post("/notify", data=body)
        assert answer.status == 400

    assert receiver.read(file) == []


async def test_it_says_that_it_is_healthy(tmp_path: Path) -> None:
    """The launcher waits for this answer."""
    async with TestClient(TestServer(receiver.application(tmp_path / "n"))) as client:
        assert (await client.get("/-/healthy")).status == 200


def test_a_line_still_being_written_is_left_out(tmp_path: Path) -> None:
    """Reading while the receiver writes never fails on half a line."""
    file = tmp_path / "notifications.jsonl"
    file.write_text(json.dumps(BODY) + "\n" + '{"status": "fir')

    assert receiver.read(file) == [BODY]
