"""What was disclosed and what a score gives away: the leak meter, the privacy-utility trade-off, who saw what, opened requests."""
