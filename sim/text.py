"""Texts <-> tokens: one token a word, which is enough to count, hash and stream."""

TOKENS = tuple(
    " " + word
    for word in [
        "amber",
        "basin",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "grove",
        "haven",
        "inlet",
        "juniper",
        "knoll",
        "lagoon",
        "meadow",
        "north",
        "orchard",
        "pine",
        "quarry",
        "river",
        "summit",
        "tundra",
        "upland",
        "valley",
        "willow",
        "yonder",
        "zephyr",
        "anchor",
        "bridge",
        "castle",
        "harbor",
        "island",
        "lantern",
        "mirror",
    ]
)


def tokenize(text: str) -> list[str | int]:
    """Split a text into tokens; the same text always gives the same tokens."""
    return list(text.split())


def join(tokens: list[str | int]) -> str:
    """The text of generated tokens."""
    return "".join(str(token) for token in tokens)
