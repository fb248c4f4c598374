"""The search for texts finds them, plainly written and as JSON escapes them."""

from inferwatch.trace_e2e import leaks
from inferwatch.trace_e2e.client import Asked, marker


def _asked(answer=""):
    return Asked("t", "s", 0.0, 1.0, 200, f'What is "x" about, in one sentence ? {marker(7)}', answer)


def test_questions_markers_answers_and_passages_are_looked_for():
    """Short answers say nothing: only what is long enough to be no chance is a needle."""
    wanted = leaks.needles([_asked("a long answer of the engine"), _asked("yes")], ["0123456789" * 9])
    assert "zqx00007kvw" in wanted
    assert "a long answer of the engine" in wanted
    assert "yes" not in wanted
    assert ("0123456789" * 9)[5:65] in wanted
    assert len(wanted) == 4


def test_a_leak_is_found_where_it_is(tmp_path):
    """In a store's file, and with its quotes escaped in an API's answer; clean places are not named."""
    store = tmp_path / "data" / "badger"
    store.mkdir(parents=True)
    (store / "000.vlog").write_bytes(b"\x00\x01zqx00007kvw\xff")
    (store / "001.vlog").write_bytes(b"\x00nothing")
    texts = [
        *leaks.file_texts([tmp_path / "data"]),
        ("api", rb'{"tag": "What is \"x\" about, in one sentence ? "}'),
    ]
    found = leaks.search(texts, ['What is "x" about', "zqx00007kvw"])
    assert [one.rpartition(" in ")[2] for one in found.hits] == ["data/badger/000.vlog", "api"]
    assert found.places == 3
    assert leaks.search([("clean", b"nothing")], ["zqx00007kvw"]).hits == []


def test_a_text_across_two_pieces_is_found_and_empty_space_is_skipped(tmp_path, monkeypatch):
    """Pieces of 8 bytes that overlap by 6; a store's preallocated zeros are no content."""
    monkeypatch.setattr(leaks, "_PIECE_BYTES", 8)
    monkeypatch.setattr(leaks, "_OVERLAP_BYTES", 6)
    (tmp_path / "store").write_bytes(b"......secret" + b"\x00" * 800)
    seen = leaks.search(leaks.file_texts([tmp_path]), ["secret"])
    assert len(seen.hits) == 1
    assert seen.size_bytes < 100


def test_every_careless_attribute_carries_a_secret_of_its_own():
    """So that one which got through can be named."""
    assert len(set(leaks.CARELESS_NEEDLES)) == len(leaks.CARELESS) + 2
