"""`python -m exporters node`: the agent behind HTTP on /metrics, /-/healthy and /-/ready."""

import argparse
import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

import slo.spec
from exporters import configfile
from exporters.node.agent import Agent
from exporters.node.config import DEFAULT_INSTANCE, NodeConfig, NodeFile
from exporters.node.host_side import default_node_name
from exporters.node.nvml import LiveNvml, Nvml
from exporters.node.recorded import RecordedNvml, RecordingError
from exporters.web import ListenError, exposition, own_routes, parse_listen, serve
from exporters.webconfig import load_web_config


def parser() -> argparse.ArgumentParser:
    """The command line of the agent."""
    made = argparse.ArgumentParser(prog="python -m exporters node", description=__doc__)
    made.add_argument("--listen", default="127.0.0.1:9481", metavar="HOST:PORT")
    made.add_argument(
        "--proc-root", type=Path, default=Path("/proc"), help="in a container: the host's /proc"
    )
    made.add_argument("--sys-root", type=Path, default=Path("/sys"), help="in a container: the host's /sys")
    made.add_argument("--node", default="", help="the node's name; else the host name")
    made.add_argument(
        "--engine-instance",
        metavar="TEMPLATE",
        help=f"label `instance` of the engines of this node, {{port}} for their port (default {DEFAULT_INSTANCE})",
    )
    made.add_argument("--config", type=Path, help="engines, tenants and expected GPUs (YAML)")
    made.add_argument(
        "--web-config", "--web.config.file", dest="web_config", type=Path, help="TLS and basic auth"
    )
    made.add_argument("--spec", type=Path, default=slo.spec.DEFAULT_PATH, help="slo.yaml")
    made.add_argument(
        "--nvml-recording",
        type=Path,
        help="answer from a recording instead of the driver (marked in the series)",
    )
    return made


def node_app(agent: Agent) -> web.Application:
    """The application; the agent runs as long as it does. Ready: the sampler ran once."""

    async def metrics(request: web.Request) -> web.Response:
        scraper = f"{request.remote} {request.headers.get('User-Agent', '')}"
        return exposition(agent.scrape(scraper))

    async def running(_: web.Application) -> AsyncIterator[None]:
        await asyncio.to_thread(agent.open)
        agent.start()
        yield
        await asyncio.to_thread(agent.stop)

    app = web.Application()
    app.cleanup_ctx.append(running)
    own = own_routes(CollectorRegistry(), ready=lambda: agent.ready)
    app.router.add_routes([web.get("/metrics", metrics), *(r for r in own if r.path != "/metrics")])
    return app


def main(argv: list[str]) -> int:
    """Run until SIGINT or SIGTERM; 2 when a file or option cannot be used."""
    options = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        listen = parse_listen(options.listen)
        file = configfile.load(options.config, NodeFile) if options.config else NodeFile()
        if options.engine_instance:
            file = NodeFile.model_validate(file.model_dump() | {"engine_instance": options.engine_instance})
        web_config = load_web_config(options.web_config) if options.web_config else None
        spec = slo.spec.load(options.spec)
        nvml: Nvml = RecordedNvml.load(options.nvml_recording) if options.nvml_recording else LiveNvml()
        for name in ("proc_root", "sys_root"):
            if not getattr(options, name).is_dir():
                flag = "--" + name.replace("_", "-")
                raise configfile.ConfigError(f"{flag} {getattr(options, name)}: not a folder; mount it")
    except ValidationError as error:
        sys.stderr.write(
            f"--engine-instance {options.engine_instance!r}: {error.errors()[0]['msg'].removeprefix('Value error, ')}\n"
        )
        return 2
    except (ListenError, configfile.ConfigError, slo.spec.SpecError, RecordingError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    node = options.node or default_node_name(options.proc_root)
    agent = Agent(nvml, NodeConfig(node, options.proc_root, options.sys_root, file), spec.node)
    asyncio.run(serve(node_app(agent), listen, web_config))
    return 0
