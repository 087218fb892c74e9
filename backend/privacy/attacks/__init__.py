"""The attack lab: every row of SECURITY.md that can be shown, run without its defence and against what is shipped. Plays all parties."""
