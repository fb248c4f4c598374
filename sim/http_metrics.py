"""`http_*` of the API server: one sample a request, series only from a handler's first hit."""

import time

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter, Histogram, Summary

from sim.families import HTTP_COARSE_BOUNDS, HTTP_FINE_BOUNDS

# Probes and scrapes are not traffic.
UNCOUNTED = frozenset({"/metrics", "/metrics/", "/health", "/load", "/ping", "/version", "/server_info"})
UNMATCHED = "none"


class HttpMetrics:
    """Counts and times answered requests by route template and status class."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "http_requests", "Answered requests.", ["method", "status", "handler"], registry=registry
        )
        self._request_bytes = Summary(
            "http_request_size_bytes", "Content-Length of requests.", ["handler"], registry=registry
        )
        self._response_bytes = Summary(
            "http_response_size_bytes", "Content-Length of answers; 0 when streamed.", ["handler"],
            registry=registry,
        )  # fmt: skip
        self._seconds_fine = Histogram(
            "http_request_duration_highr_seconds", "Request to last byte, all handlers.",
            registry=registry, buckets=HTTP_FINE_BOUNDS,
        )  # fmt: skip
        self._seconds_coarse = Histogram(
            "http_request_duration_seconds", "Request to last byte by handler.", ["method", "handler"],
            registry=registry, buckets=HTTP_COARSE_BOUNDS,
        )  # fmt: skip

    def answered(
        self, method: str, handler: str, status: int, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Count one request that took `seconds` in all."""
        self._requests.labels(method, f"{status // 100}xx", handler).inc()
        self._request_bytes.labels(handler).observe(request_bytes)
        self._response_bytes.labels(handler).observe(response_bytes)
        self._seconds_fine.observe(seconds)
        self._seconds_coarse.labels(method, handler).observe(seconds)


def instrument(metrics: HttpMetrics) -> Middleware:
    """Middleware that counts every request which is traffic.

    A stream counts with the status it began with, and a request whose client left counts as
    2xx: both as vLLM's server counts them.
    """

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in UNCOUNTED:
            return await handler(request)
        began = time.perf_counter()
        status, size = 200, 0
        try:
            response = await handler(request)
            status = response.status
            if isinstance(response, web.Response) and isinstance(response.body, bytes):
                size = len(response.body)
            return response
        except Exception:  # aiohttp answers it with 500 further out
            status = 500
            raise
        finally:
            resource = request.match_info.route.resource
            template = resource.canonical if resource is not None else UNMATCHED
            seconds = time.perf_counter() - began
            metrics.answered(request.method, template, status, seconds, request.content_length or 0, size)

    return count
