"""`python -m inferwatch.render` serves dashboards as pages; see server.py."""

from inferwatch.render.server import main

if __name__ == "__main__":
    main()
