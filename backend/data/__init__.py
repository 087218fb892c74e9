"""Federation file, feature dictionary, parties' tables, binning and the built-in demo."""
