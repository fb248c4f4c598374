"""Packages that ship text -> sentences in four domains, and interface messages in two languages.

vaderSentiment 0.5's source distribution holds the sentences of its paper (film reviews, product reviews,
newspaper editorials, tweets); Wagtail's wheel holds its messages in English with translations.
"""

import gettext
import io
import random
import re
import tarfile
import zipfile
from pathlib import Path

DOMAINS = {
    "movies": "movieReview",
    "amazon": "amazonReview",
    "editorials": "nytEditorial",
    "tweets": "tweets",
}
LANGUAGE = "de"
SEED = 17


def domains(sdist: Path) -> dict[str, list[str]]:
    """The four ground-truth files of vaderSentiment's source distribution: distinct sentences, shuffled."""
    with zipfile.ZipFile(sdist) as outer:
        (name,) = (n for n in outer.namelist() if n.endswith("hutto_ICWSM_2014.tar.gz"))
        packed = io.BytesIO(outer.read(name))
    texts = {}
    with tarfile.open(fileobj=packed) as inner:
        for domain, prefix in DOMAINS.items():
            (member,) = (m for m in inner.getmembers() if re.search(f"/{prefix}.*GroundTruth", m.name))
            handle = inner.extractfile(member)
            if handle is None:
                raise ValueError(
                    f"{sdist}: {member.name} is no file; is it vaderSentiment 0.5's source distribution?"
                )
            rows = handle.read().decode("utf-8", "replace").splitlines()
            sentences = (row.split("\t", 2)[2].strip() for row in rows if row.count("\t") >= 2)
            texts[domain] = _shuffled(list(dict.fromkeys(sentences)))
    return texts


def _shuffled(texts: list[str]) -> list[str]:
    """In one random order, always the same: the files are sorted by sentiment and source, which is a drift too."""
    random.Random(SEED).shuffle(texts)
    return texts


def languages(wheel: Path) -> tuple[list[str], list[str]]:
    """Wagtail's messages of two words and more in English, and the same in German, in pairs."""
    pairs: dict[str, str] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(
            n for n in archive.namelist() if n.endswith(f"locale/{LANGUAGE}/LC_MESSAGES/django.mo")
        ):
            catalogue = gettext.GNUTranslations(io.BytesIO(archive.read(name)))
            for key in _keys(archive.read(name)):
                value = catalogue.gettext(key)
                if len(key.split()) >= 2 and value and value != key:
                    pairs.setdefault(key, value)
    order = _shuffled(list(pairs))
    return order, [pairs[key] for key in order]


def _keys(mo: bytes) -> list[str]:
    """The messages of a .mo file without plural and context, in its order."""
    count, at = (int.from_bytes(mo[8 + 4 * n : 12 + 4 * n], "little") for n in (0, 1))
    keys = []
    for n in range(count):
        length, offset = (
            int.from_bytes(mo[at + 8 * n + 4 * m : at + 8 * n + 4 * m + 4], "little") for m in (0, 1)
        )
        text = mo[offset : offset + length].decode()
        if text and "\x00" not in text and "\x04" not in text:
            keys.append(text)
    return keys
