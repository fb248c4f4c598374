"""A named piece of work -> one span of it: as `with`, `async with`, or around functions, coroutines and generators.

Spans are timed by the monotonic clock: a step of the wall clock gives no negative or endless duration.
"""

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import Token
from time import perf_counter_ns, time_ns
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import SpanKind, Tracer

from inferwatch.tracing.handle import Handle, Value, inside

P = ParamSpec("P")
R = TypeVar("R")

_TRACER = trace.get_tracer("inferwatch.tracing")
_GONE = (GeneratorExit, asyncio.CancelledError)


class Work:
    """
    One span to be made. As a decorator every call has its own; as a context manager it is used once at a time.

    A decorated generator's span lasts from its first item asked for until it ends, fails or is given up, and each
    item it yields ticks the token clock.
    """

    def __init__(
        self,
        name: str,
        kind: SpanKind,
        attributes: dict[str, Value],
        parent: Callable[[], Context | None] | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._name, self._kind, self._attributes, self._parent = name, kind, attributes, parent
        self._tracer = tracer or _TRACER
        self._open: tuple[Handle, Token[Context], int, int] | None = None

    def __enter__(self) -> Handle:
        if self._open is not None:
            raise RuntimeError(
                f"span {self._name!r} is entered already; make a new one for each piece of work"
            )
        handle, began, wall = self._start()
        self._open = (handle, attach(inside(handle)), began, wall)
        return handle

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._open is None:
            raise RuntimeError(f"span {self._name!r} was not entered")
        handle, token, began, wall = self._open
        self._open = None
        detach(token)
        _end(handle, error, began, wall)

    async def __aenter__(self) -> Handle:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, at)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function, coroutine function, generator or async generator function."""
        wrapped: Any
        if inspect.isasyncgenfunction(function):
            wrapped = self._async_generator(function)
        elif inspect.isgeneratorfunction(function):
            wrapped = self._generator(function)
        elif inspect.iscoroutinefunction(function):
            wrapped = self._coroutine(function)
        else:
            wrapped = self._function(function)
        return cast("Callable[P, R]", functools.wraps(function)(wrapped))

    def _new(self) -> "Work":
        return Work(self._name, self._kind, self._attributes, self._parent, self._tracer)

    def _start(self) -> tuple[Handle, int, int]:
        wall, began = time_ns(), perf_counter_ns()
        context = self._parent() if self._parent is not None else None
        span = self._tracer.start_span(self._name, context, self._kind, self._attributes, start_time=wall)
        return Handle(span), began, wall

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._new():
                return function(*args, **kwargs)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            with self._new():
                return await function(*args, **kwargs)

        return call

    def _generator(self, function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            handle, began, wall = self._start()
            within = inside(handle)
            tick, source = handle.tokens().tick, function(*args, **kwargs)
            step, value = source.send, None
            try:
                while True:
                    token = attach(within)
                    try:
                        item = step(value)
                    except StopIteration as stop:
                        _end(handle, None, began, wall)
                        return stop.value
                    finally:
                        detach(token)
                    tick()
                    try:
                        value = yield item
                        step = source.send
                    except GeneratorExit:
                        token = attach(within)
                        try:
                            source.close()
                        finally:
                            detach(token)
                        raise
                    except BaseException as error:  # noqa: BLE001 # goes into the generator, as if it was not wrapped
                        step, value = source.throw, error
            except BaseException as error:
                _end(handle, error, began, wall)
                raise

        return call

    def _async_generator(self, function: Callable[..., AsyncGenerator[Any, Any]]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            handle, began, wall = self._start()
            within = inside(handle)
            tick, source = handle.tokens().tick, function(*args, **kwargs)
            step, value = source.asend, None
            try:
                while True:
                    token = attach(within)
                    try:
                        item = await step(value)
                    except StopAsyncIteration:
                        _end(handle, None, began, wall)
                        return
                    finally:
                        detach(token)
                    tick()
                    try:
                        value = yield item
                        step = source.asend
                    except GeneratorExit:
                        token = attach(within)
                        try:
                            await source.aclose()
                        finally:
                            detach(token)
                        raise
                    except BaseException as error:  # noqa: BLE001 # goes into the generator, as if it was not wrapped
                        step, value = source.athrow, error
            except BaseException as error:
                _end(handle, error, began, wall)
                raise

        return call


def _end(handle: Handle, error: BaseException | None, began: int, wall: int) -> None:
    if not handle.recording:
        handle.span.end()
        return
    if isinstance(error, _GONE) or getattr(error, "abandoned", False):
        handle.abandoned()
    elif error is not None:
        _say(handle, error)
    handle.finish_timing()
    handle.span.end(wall + perf_counter_ns() - began)


def _say(handle: Handle, error: BaseException) -> None:
    """
    Web frameworks raise answers: one below 500 is the client's doing and no failure of ours. What a service that
    we asked answered (aiohttp's client, urllib) is an error of ours whatever its status.
    """
    status = getattr(error, "status", None)
    asked = isinstance(error, OSError) or hasattr(error, "request_info")
    if not asked and isinstance(status, int) and 100 <= status < 600:
        handle.http_status(status)
        return
    handle.failed(str(getattr(error, "error_type", "") or type(error).__qualname__))
