"""Which records all parties hold, found without showing the others (private set intersection), and their common order."""
