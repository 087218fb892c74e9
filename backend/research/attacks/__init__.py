"""The attack lab: every row of docs/attacks.md, run without its defence and against what is shipped. Plays all parties."""
