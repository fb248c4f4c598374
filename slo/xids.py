"""What each XID of NVIDIA's driver asks of whoever runs the node, by NVIDIA's XID catalogue."""

CLASSES: dict[str, tuple[int, ...]] = {
    "application": (13, 31, 43, 45, 68, 69),
    "memory": (48, 63, 64, 92, 94, 95, 171, 172),
    "link": (74, 121, 137, 144, 145, 146, 147, 148, 149, 150),
    "lost": (79,),
    "firmware": (38, 61, 62, 119, 120, 140, 143, 154),
    "power": (54,),
    "other": (),
}
HARDWARE = ("memory", "link", "lost", "firmware", "power")
_CLASS_OF = {code: name for name, codes in CLASSES.items() for code in codes}


def class_of(code: int) -> str:
    """The class of an XID; "other" for one that no class lists."""
    return _CLASS_OF.get(code, "other")


def codes_of(*classes: str) -> tuple[int, ...]:
    """The codes of these classes, in order."""
    return tuple(sorted(code for name in classes for code in CLASSES[name]))
