"""The result of a run -> a table for people."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the rows, what was missed, what is not as it ships, and the figures."""
    console.print(_table(result["rows"]))
    for row in result["rows"]:
        for failure in row["failures"]:
            console.print(f"not as expected: {row['row']}: {failure}", markup=False, soft_wrap=True)
    for stage, said in result["unexplained_pages"].items():
        for sentence in said:
            console.print(f"not as expected: {stage}: {sentence}", markup=False, soft_wrap=True)
    if result["recorded"]:
        console.print(f"\nnodes: {result['recorded']}", markup=False, soft_wrap=True)
    for row in result["rows"]:
        for delivery in row["deliveries"]:
            if delivery["hold_note"]:
                console.print(f"{row['row']}: {delivery['alert']} is {delivery['hold_note']}", markup=False)
    delay, share = result["delay_seconds"], result["delay_over_theory"]
    console.print(
        f"\nfault to notification: median {_number(delay['median'])} s, worst {_number(delay['worst'])} s; "
        f"over theory: median {_number(share['median'])}, worst {_number(share['worst'])}; "
        f"{result['seconds']:.0f} s in all, load average up to {_number(result['load_average']['worst'])}"
    )
    failed = sum(not row["passed"] for row in result["rows"])
    console.print(f"{len(result['rows']) - failed} of {len(result['rows'])} rows as expected")


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (
        "row",
        "fault",
        "delivered",
        "after s",
        "theory s",
        "share",
        "over after s",
        "also came",
        "",
    ):
        table.add_column(title, justify="right" if title in NUMBERS else "left")
    for row in rows:
        lines = row["deliveries"] or [None]
        for number, delivery in enumerate(lines):
            first = number == 0
            table.add_row(
                row["row"] if first else "",
                row["fault"] if first else "",
                *_cells(delivery),
                ", ".join(row["seen"]) if first else "",
                ("ok" if row["passed"] else "NOT AS EXPECTED") if first else "",
            )
    return table


NUMBERS = ("after s", "theory s", "share", "over after s")


def _cells(delivery: Mapping[str, Any] | None) -> tuple[str, ...]:
    if delivery is None:
        return ("nothing", "", "", "", "")
    told = " ".join([delivery["alert"], *delivery["labels"].values()])
    over = delivery["recovery_seconds"]
    return (
        told,
        _number(delivery["delay_seconds"]),
        _number(delivery["theory_seconds"]),
        _number(delivery["delay_over_theory"]),
        "not shown" if over is None and delivery["recovery_note"] else _number(over),
    )


def _number(value: float | None) -> str:
    return "never" if value is None else f"{value:.3g}" if value < 10 else f"{value:.0f}"
