"""The label cache: same text, same answer; bounded however the labels churn."""

import pytest

from exporters.engine.exposition import LineError
from exporters.engine.labels import FOREIGN, LabelCache, LabelReader, LabelRule

READER = LabelReader(
    model=lambda labels: labels.get(b"model_name"),
    rank=lambda labels: labels.get(b"engine", b"0"),
    foreign=lambda labels: b"server" in labels,
)
PLAIN = LabelRule("plain")
REASON = LabelRule("reason", ((b"why", b"reason"),), b"why", ranked=False)


def test_labels_are_chosen_and_renamed():
    """Model and rank first, then what the rule keeps, under our names; the rest is dropped."""
    cache = LabelCache()
    assert (
        cache.resolve("x", PLAIN, READER, b'pid="4",engine="1",model_name="m"') == b'model="m",dp_rank="1"} '
    )
    assert (
        cache.resolve("x", REASON, READER, b'model_name="m",why="full",engine="1"')
        == b'model="m",reason="full"} '
    )
    assert cache.resolve("x", PLAIN, READER, b'server="a"') == FOREIGN


def test_a_required_label_that_is_missing_is_an_error():
    """A sample that lost the label that tells it apart is not published."""
    with pytest.raises(LineError, match="why is missing"):
        LabelCache().resolve("x", REASON, READER, b'model_name="m"')


def test_a_model_s_spelling_is_mapped_escapes_and_all():
    """The alias is compared as it stands in the page."""
    cache = LabelCache({'C:\\m "x"': 'chat "a"'})
    out = cache.resolve("x", PLAIN, READER, b'model_name="C:\\\\m \\"x\\""')
    assert out == b'model="chat \\"a\\"",dp_rank="0"} '


def test_churning_labels_cannot_grow_the_cache():
    """A thousand texts through a cache of ten: never more than ten kept, every answer right."""
    cache = LabelCache(max_entries=10)
    for at in range(1000):
        assert cache.resolve("x", PLAIN, READER, b'model_name="%d"' % at) == b'model="%d",dp_rank="0"} ' % at
        assert cache.entries <= 10
    by_size = LabelCache(max_bytes=2000)
    for at in range(1000):
        by_size.resolve("x", PLAIN, READER, b'model_name="%0500d"' % at)
        assert by_size.bytes <= 2000


def test_a_table_in_use_survives_the_clearing():
    """The table handed out stays the live one after the cache was emptied."""
    cache = LabelCache(max_entries=1)
    table = cache.table("x", PLAIN)
    cache.resolve("x", PLAIN, READER, b'model_name="a"')
    cache.resolve("x", PLAIN, READER, b'model_name="b"')
    assert list(table) == [b'model_name="b"']


def test_labels_beyond_any_reason_are_refused():
    """A label text of more than 8 KiB is not kept, nor published."""
    with pytest.raises(LineError, match="more than 8192 bytes"):
        LabelCache().resolve("x", PLAIN, READER, b'model_name="' + b"m" * 9000 + b'"')
