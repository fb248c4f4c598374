"""Would we ship it: load on an inference engine, timed truthfully, recorded request by request, judged by gates."""
