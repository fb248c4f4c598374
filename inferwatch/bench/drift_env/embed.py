"""Texts that ship inside Python packages -> sentence embeddings by all-MiniLM-L6-v2, as one .npz.

Run by the Python of the vLLM environment (torch and transformers are there); imports nothing of ours.
Sets of the answer, one row a text: see SETS. `v2` is the same model read wrongly: its fifth layer of six.
"""

import gettext
import io
import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

BATCH = 64
TRUNCATED_WORDS = 5
DOMAINS = {
    "movies": "movieReview",
    "amazon": "amazonReview",
    "editorials": "nytEditorial",
    "tweets": "tweets",
}
LANGUAGE = "de"
MOST_TEXTS = {"movies": 6000}
OTHERS_TEXTS = 1800
HELD_BACK = 1800  # the last movie texts are those that are also truncated, and read by the wrong layer
SETS = (*DOMAINS, "english", "german", "truncated", "v2")


def domains(sdist: Path) -> dict[str, list[str]]:
    """The four ground-truth files of vaderSentiment's source distribution: distinct sentences in file order."""
    with zipfile.ZipFile(sdist) as outer:
        (name,) = (n for n in outer.namelist() if n.endswith("hutto_ICWSM_2014.tar.gz"))
        packed = io.BytesIO(outer.read(name))
    texts = {}
    with tarfile.open(fileobj=packed) as inner:
        for domain, prefix in DOMAINS.items():
            (member,) = (m for m in inner.getmembers() if re.search(f"/{prefix}.*GroundTruth", m.name))
            handle = inner.extractfile(member)
            if handle is None:
                raise SystemExit(f"{sdist}: {member.name} is no file")
            rows = handle.read().decode("utf-8", "replace").splitlines()
            sentences = (row.split("\t", 2)[2].strip() for row in rows if row.count("\t") >= 2)
            texts[domain] = list(dict.fromkeys(sentences))
    return texts


def languages(wheel: Path) -> tuple[list[str], list[str]]:
    """Messages of Wagtail in English and their German translations, in pairs."""
    pairs: dict[str, str] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(
            n for n in archive.namelist() if n.endswith(f"locale/{LANGUAGE}/LC_MESSAGES/django.mo")
        ):
            catalogue = gettext.GNUTranslations(io.BytesIO(archive.read(name)))._catalog
            for key, value in catalogue.items():
                text = key[0] if isinstance(key, tuple) else key
                if text and len(text.split()) >= 2 and value and value != text:
                    pairs.setdefault(text, value)
    return list(pairs), list(pairs.values())


def embed(model: object, tokenizer: object, texts: list[str], layer: int = -1) -> np.ndarray:
    """Mean-pooled, normalised hidden states of *layer*: float32 of shape (len(texts), 384)."""
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    out = np.empty((len(texts), 384), np.float32)
    with torch.inference_mode():
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH]
            batch = tokenizer(
                [texts[at] for at in rows], padding=True, truncation=True, max_length=128, return_tensors="pt"
            )
            hidden = model(**batch, output_hidden_states=True).hidden_states[layer]
            mask = batch["attention_mask"].unsqueeze(-1)
            pooled = (hidden * mask).sum(1) / mask.sum(1)
            out[rows] = torch.nn.functional.normalize(pooled, dim=1).numpy()
    return out


def main(argv: list[str]) -> int:
    """`embed.py MODEL_DIR VADER_SDIST WAGTAIL_WHEEL OUT.npz`: one JSON line a set when it is done."""
    model_dir, sdist, wheel, out = (Path(word) for word in argv)
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    model = AutoModel.from_pretrained(model_dir).eval()
    texts = domains(sdist)
    texts["english"], texts["german"] = languages(wheel)
    texts = {name: some[: MOST_TEXTS.get(name, OTHERS_TEXTS)] for name, some in texts.items()}
    texts["truncated"] = [" ".join(text.split()[:TRUNCATED_WORDS]) for text in texts["movies"][-HELD_BACK:]]
    vectors = {}
    for name in SETS:
        layer, chosen = (-2, texts["movies"][-HELD_BACK:]) if name == "v2" else (-1, texts[name])
        vectors[name] = embed(model, tokenizer, chosen, layer)
        sys.stdout.write(json.dumps({"set": name, "texts": len(chosen)}) + "\n")
        sys.stdout.flush()
    np.savez(out.with_suffix(".part.npz"), **vectors)
    out.with_suffix(".part.npz").replace(out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
