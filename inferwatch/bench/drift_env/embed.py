"""Texts that ship inside Python packages -> sentence embeddings by all-MiniLM-L6-v2, as one .npz.

Run by the Python of the vLLM environment (torch and transformers are there). Sets of the answer, one row a text:
see SETS. `v2` is the same model read wrongly: its fifth layer of six.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from inferwatch.bench.drift_env.texts import DOMAINS, domains, languages

BATCH = 64
MOST_TOKENS = 128
TRUNCATED_WORDS = 5
MOST_TEXTS = {"movies": 5500}
OTHERS_TEXTS = 1500
HELD_BACK = 1500  # the last movie texts are those that are also truncated, and read by the wrong layer
SETS = (*DOMAINS, "english", "german", "truncated", "v2")


def embed(model: Any, tokenizer: Any, texts: list[str], layer: int = -1) -> np.ndarray:
    """Mean-pooled, normalised hidden states of *layer*: float32 of shape (len(texts), 384)."""
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    out = np.empty((len(texts), model.config.hidden_size), np.float32)
    with torch.inference_mode():
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH]
            batch = tokenizer(
                [texts[at] for at in rows],
                padding=True,
                truncation=True,
                max_length=MOST_TOKENS,
                return_tensors="pt",
            )
            hidden = model(**batch, output_hidden_states=True).hidden_states[layer]
            mask = batch["attention_mask"].unsqueeze(-1)
            pooled = (hidden * mask).sum(1) / mask.sum(1)
            out[rows] = torch.nn.functional.normalize(pooled, dim=1).numpy()
    return out


def main(argv: list[str]) -> int:
    """`MODEL_DIR VADER_SDIST WAGTAIL_WHEEL OUT.npz`: one JSON line a set when it is done."""
    model_dir, sdist, wheel, out = (Path(word) for word in argv)
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    model = AutoModel.from_pretrained(model_dir).eval()
    texts = domains(sdist)
    texts["english"], texts["german"] = languages(wheel)
    texts = {name: some[: MOST_TEXTS.get(name, OTHERS_TEXTS)] for name, some in texts.items()}
    texts["truncated"] = [" ".join(text.split()[:TRUNCATED_WORDS]) for text in texts["movies"][-HELD_BACK:]]
    vectors: dict[str, Any] = {}
    for name in SETS:
        layer, chosen = (-2, texts["movies"][-HELD_BACK:]) if name == "v2" else (-1, texts[name])
        vectors[name] = embed(model, tokenizer, chosen, layer)
        sys.stdout.write(json.dumps({"set": name, "texts": len(chosen)}) + "\n")
        sys.stdout.flush()
    draft = out.with_suffix(".part.npz")
    np.savez(draft, **vectors)
    draft.replace(out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
