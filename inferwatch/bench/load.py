"""The load client beside its peers on one truthful server -> rates reached and errors against the truth.

Peers run from their own environments, named by INFERWATCH_BENCH_VLLM, _AIPERF and _GUIDELLM (a Python each) with
INFERWATCH_BENCH_TOKENIZER (a folder with a tokenizer.json); without them only our client is measured.
"""

import click

from loadtests.bench import measure


def run() -> dict[str, object]:
    """Minutes; needs two quiet cores and a C compiler."""
    return measure.run(lambda text: click.echo(text, err=True))
