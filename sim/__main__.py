"""`python -m sim`: flags -> a running simulated engine, until a signal ends it."""

import asyncio
import json
import logging
import signal
from typing import Any

import click
from aiohttp import web

from sim import scenarios
from sim.config import EngineConfig, LoadConfig, SimConfig
from sim.control import Control
from sim.server import Server, with_free_ports

ENGINE, LOAD = EngineConfig(), LoadConfig()


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of both ports.")
@click.option("--port", default=8000, show_default=True, help="Port of the API and /metrics; 0 picks one.")
@click.option("--control-port", default=0, show_default=True, help="Port of /sim/scenario; 0 picks one.")
@click.option("--model", default=ENGINE.model, show_default=True, help="Served model name.")
@click.option("--scenario", default="healthy", show_default=True, help="Scenario to begin with.")
@click.option("--scenario-params", default="{}", show_default=True, help="Its parameters, as JSON.")
@click.option("--seed", default=ENGINE.seed, show_default=True, help="Seed of answers and load.")
@click.option("--self-load", default=0.0, show_default=True, help="Built-in clients, requests/s.")
@click.option("--self-load-max-in-flight", default=LOAD.max_in_flight, show_default=True)
@click.option("--self-load-timeout-seconds", default=LOAD.timeout_seconds, show_default=True)
@click.option("--max-num-seqs", default=ENGINE.max_num_seqs, show_default=True)
@click.option("--num-blocks", default=ENGINE.num_blocks, show_default=True, help="KV blocks.")
@click.option("--block-size", default=ENGINE.block_size, show_default=True, help="Tokens a KV block.")
@click.option("--max-model-len", default=ENGINE.max_model_len, show_default=True)
@click.option("--max-num-batched-tokens", default=ENGINE.max_num_batched_tokens, show_default=True)
@click.option("--long-prefill-token-threshold", default=0, show_default=True)
@click.option("--max-num-queued-reqs", type=int, default=None, help="No limit when left out.")
@click.option("--max-num-queued-tokens", type=int, default=None, help="No limit when left out.")
@click.option("--prefill-tokens-per-second", default=ENGINE.prefill_tokens_per_second, show_default=True)
@click.option("--decode-step-seconds", default=ENGINE.decode_step_seconds, show_default=True)
@click.option("--decode-sequence-seconds", default=ENGINE.decode_sequence_seconds, show_default=True)
@click.option("--frontend-seconds", default=ENGINE.frontend_seconds, show_default=True)
@click.option("--natural-output-tokens", default=ENGINE.natural_output_tokens, show_default=True)
@click.option("--kv-cache-metrics", is_flag=True, help="Also expose vllm:kv_block_* histograms.")
def main(
    host: str,
    port: int,
    control_port: int,
    scenario: str,
    scenario_params: str,
    self_load: float,
    self_load_max_in_flight: int,
    self_load_timeout_seconds: float,
    **engine: Any,
) -> None:
    """Run a SIMULATED inference engine: vLLM-compatible API and /metrics, no model, no GPU."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        config = SimConfig(
            engine=EngineConfig(**engine),
            load=LoadConfig(
                requests_per_second=self_load,
                max_in_flight=self_load_max_in_flight,
                timeout_seconds=self_load_timeout_seconds,
            ),
            host=host,
            port=port,
            control_port=control_port,
        )
        params = json.loads(scenario_params)
        scenarios.find(scenario).values(params)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    asyncio.run(serve(with_free_ports(config), scenario, params))


async def serve(config: SimConfig, scenario: str, params: dict[str, object]) -> None:
    """Serve until SIGINT or SIGTERM."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with Server(config) as server:
        runner = web.AppRunner(Control(server).application(), shutdown_timeout=0.5, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, config.host, config.control_port).start()
        control = f"http://{config.host}:{config.control_port}/sim/scenario"
        click.echo(
            f"SIMULATED inference engine (no model, no GPU): model {config.engine.model}, "
            f"API {server.url()}, control {control}",
        )
        await server.switch(scenario, params)
        await ended.wait()
        await runner.cleanup()


if __name__ == "__main__":
    main()
