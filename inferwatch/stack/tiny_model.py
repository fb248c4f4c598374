"""Nothing -> a tiny Llama folder that vLLM serves with dummy weights: our own text, tokenizer and template.

Run by the virtual environment that has `tokenizers`: ``python tiny_model.py FOLDER``.
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

VOCABULARY_SIZE = 8000
MAX_POSITIONS = 4096
SPECIAL_TOKENS = ("<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)

NOUNS = (
    "server engine queue cache token request answer window budget alarm night morning river garden letter "
    "bridge kitchen teacher doctor market winter summer station paper number question story picture village "
    "island mountain machine reader writer driver farmer singer painter builder captain neighbour customer "
    "forest harbour library hospital journey problem promise reason season shadow signal silence surface"
)
VERBS = (
    "watch measure carry answer open close follow count gather deliver explain remember repair replace "
    "return share show start stop support travel visit wait wonder work write borrow build change choose "
    "compare describe discover enjoy finish guard help improve invite join learn listen notice offer order"
)
ADJECTIVES = (
    "quiet busy narrow bright heavy gentle early late honest careful sudden steady hollow golden distant "
    "common simple broken patient clever famous hungry lonely modern proper recent secret silver tender"
)
NOUN_ENDINGS = ("", "s", "'s", "less", "like", "ship")
VERB_ENDINGS = ("", "s", "ed", "ing", "er", "able")
ADJECTIVE_ENDINGS = ("", "ly", "ness", "er", "est", "ish")
PREFIXES = ("", "", "", "re", "un", "over", "under", "out", "inter", "non")


def sentences(count: int, seed: int = 0) -> Iterator[str]:
    """Yield *count* English-looking sentences, the same for the same seed."""
    draw = random.Random(seed)

    def word(stems: str, endings: tuple[str, ...]) -> str:
        return draw.choice(PREFIXES) + draw.choice(stems.split()) + draw.choice(endings)

    for _ in range(count):
        subject = f"the {word(ADJECTIVES, ADJECTIVE_ENDINGS)} {word(NOUNS, NOUN_ENDINGS)}"
        thing = f"{draw.choice(('a', 'the', 'this', 'their'))} {word(NOUNS, NOUN_ENDINGS)}"
        place = f"{draw.choice(('near', 'behind', 'before', 'without'))} the {word(NOUNS, NOUN_ENDINGS)}"
        verb = word(VERBS, VERB_ENDINGS)
        tail = draw.choice((".", "?", "!", f", {draw.randint(1, 9999)} times.", f", and {verb} again."))
        yield f"{subject.capitalize()} {verb} {thing} {place}{tail}"


def write_model(folder: Path) -> None:
    """Write config, tokenizer and chat template of the model to *folder*; the same bytes every time."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(20_000), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "config.json", _model_config(tokenizer.get_vocab_size()))
    _write_json(folder / "generation_config.json", {"bos_token_id": 0, "eos_token_id": 1})
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "model_max_length": MAX_POSITIONS,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )


def _model_config(vocabulary_size: int) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": MAX_POSITIONS,
        "vocab_size": vocabulary_size,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }


def _write_json(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_model(Path(sys.argv[1]))
