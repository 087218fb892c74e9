"""The papers' tables and figures again, on the data that can be had: ours beside theirs."""
