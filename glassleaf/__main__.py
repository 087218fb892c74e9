"""`python -m glassleaf`: the command line, as ``glassleaf`` starts it."""

from glassleaf import main

if __name__ == "__main__":
    main()
