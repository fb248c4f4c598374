"""Two levels, and what is remembered of questions without an answer."""

import sqlite3

import pytest

from rag.cache import TwoLevels, key_of
from rag.config import Cache, ConfigError
from rag.index import Hit
from rag.metrics import Metrics

from .conftest import sample

HITS = (Hit(3, 0.5), Hit(1, 0.25))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def _cache(metrics=None, clock=None, **config):
    return TwoLevels(
        Cache(**{"seconds": 60, "negative_seconds": 5, **config}), metrics or Metrics(), clock or Clock()
    )


def test_case_and_spaces_make_no_other_question_but_version_and_corpus_do():
    """The key is a digest and holds no text."""
    key = key_of("What  IS it?", "v1", "c")
    assert key == key_of("what is it? ", "v1", "c")
    assert len({key, key_of("what is it?", "v2", "c"), key_of("what is it?", "v1", "d")}) == 3
    assert len(key) == 64


def test_a_hit_comes_from_memory_until_it_expires():
    """60 seconds; each lookup is counted by level and result."""
    metrics, clock = Metrics(), Clock()
    cache = _cache(metrics, clock)
    assert cache.get("k").level == "miss"
    cache.put("k", HITS)
    assert cache.get("k") == ("l1", HITS)
    clock.now += 61
    assert cache.get("k").level == "miss"
    assert sample(metrics, "rag_cache_lookups_total", level="l1", result="hit") == 1
    assert sample(metrics, "rag_cache_lookups_total", level="l1", result="miss") == 2
    assert sample(metrics, "rag_cache_lookups_total", level="l2", result="miss") == 0


def test_nothing_found_is_kept_shorter_and_called_negative():
    """5 seconds; then it is searched again."""
    metrics, clock = Metrics(), Clock()
    cache = _cache(metrics, clock)
    cache.put("k", ())
    assert cache.get("k") == ("negative", ())
    clock.now += 6
    assert cache.get("k").level == "miss"
    assert sample(metrics, "rag_cache_lookups_total", level="l1", result="negative") == 1


def test_another_process_finds_it_in_the_file_and_keeps_it_in_memory(tmp_path):
    """Two caches on one file: the second's first lookup is L2's, its second is L1's."""
    path = tmp_path / "l2.sqlite"
    first, second = _cache(file=path), _cache(file=path)
    first.put("k", HITS)
    assert second.get("k") == ("l2", HITS)
    assert second.get("k") == ("l1", HITS)
    first.close()
    second.close()


def test_both_levels_have_a_limit(tmp_path):
    """Two in memory, three in the file: the oldest go first."""
    cache = _cache(entries=2, file=tmp_path / "l2.sqlite", file_entries=3, clock=(clock := Clock()))
    for key in "abcde":
        clock.now += 1
        cache.put(key, HITS)
    assert {key: cache.get(key).level for key in "edcba"} == {
        "e": "l1", "d": "l1", "c": "l2", "b": "miss", "a": "miss",
    }  # fmt: skip
    cache.close()


def test_a_broken_file_is_a_miss_and_is_logged(tmp_path, caplog):
    """The cache fails; the request does not."""
    cache = _cache(entries=0, file=tmp_path / "l2.sqlite")
    cache._file.execute("DROP TABLE hits")
    cache.put("k", HITS)
    assert cache.get("k").level == "miss"
    assert "L2 cannot be written" in caplog.text
    assert "L2 cannot be read" in caplog.text
    cache.close()


@pytest.mark.parametrize("level", ["l1", "l2"])
def test_clearing_forgets_both_levels(tmp_path, level):
    """Whatever level held it."""
    cache = _cache(entries=10 if level == "l1" else 0, file=tmp_path / "l2.sqlite")
    cache.put("k", HITS)
    cache.clear()
    assert cache.get("k").level == "miss"
    cache.close()


@pytest.mark.parametrize("kept", ["[[1]]", "{", "7", '[["a", 1]]'])
def test_a_row_that_is_none_of_ours_is_a_miss(tmp_path, kept):
    """Another program, or a release to come, wrote into the file."""
    file = tmp_path / "l2.sqlite"
    cache = _cache(file=file)
    with sqlite3.connect(file) as other:
        other.execute("INSERT INTO hits VALUES ('k', ?, 99999)", (kept,))
    assert cache.get("k") == ("miss", ())
    cache.close()


def test_a_file_that_is_no_cache_is_said_to_be_none(tmp_path):
    """At the start, with what to do, and not at the first request."""
    file = tmp_path / "l2.sqlite"
    file.write_text("this is no database, but it is long enough to be looked at as one, is it not" * 20)
    with pytest.raises(ConfigError, match="remove it, or name another"):
        _cache(file=file)


def test_another_process_that_writes_holds_nobody_up(tmp_path):
    """A put that meets a lock gives up at once and is kept in memory."""
    file = tmp_path / "l2.sqlite"
    cache = _cache(file=file)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    (patience,) = cache._file.execute("PRAGMA busy_timeout").fetchone()
    cache.put("k", HITS)
    assert patience == 20
    assert cache.get("k") == ("l1", HITS)
    other.close()
    cache.close()
