"""`python -m backend`: the command line."""

from backend.cli import main

if __name__ == "__main__":
    main()
