"""`python -m inferwatch.stack.ask URL`: exit status 0 when the URL answers 200; a health check in any image of ours."""

import sys
import urllib.error
import urllib.request

TIMEOUT_SECONDS = 3.0


def answers(url: str) -> str | None:
    """None when *url* answers 200, else what is wrong."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as answer:
            return None if answer.status == 200 else f"{url} answers HTTP {answer.status}"
    except (urllib.error.URLError, OSError, ValueError) as error:
        return f"{url}: {error}"


def main(argv: list[str]) -> int:
    """0 when the one URL given answers 200, 1 when it does not, 2 when none was given."""
    if len(argv) != 1:
        sys.stderr.write("python -m inferwatch.stack.ask URL: give one URL\n")
        return 2
    if (fault := answers(argv[0])) is not None:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
