"""Python's log records -> OTLP, for engines and services that only write to their console.

Stands alone, for environments that are not ours: it needs opentelemetry-sdk and the OTLP exporter over HTTP, which
vLLM brings. Where to and as whom is said by OTEL_EXPORTER_OTLP_ENDPOINT (or _LOGS_ENDPOINT) and OTEL_SERVICE_NAME.
"""

import atexit
import logging
import warnings

with warnings.catch_warnings():
    # Its successor lives in a package that vLLM does not bring.
    warnings.simplefilter("ignore", DeprecationWarning)
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

OWN = ("opentelemetry", "urllib3", "requests")
"""Loggers of the way to the collector itself: their records would make more of them."""


class OtlpHandler(LoggingHandler):
    """A handler for logging.config: ``{"class": "otlp_log.OtlpHandler"}``; records carry the trace they are made in."""

    def __init__(self, level: int | str = logging.INFO) -> None:
        provider = LoggerProvider()
        provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        atexit.register(provider.shutdown)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            super().__init__(logging.NOTSET, provider)
        self.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record in the background."""
        if not record.name.startswith(OWN):
            super().emit(record)
