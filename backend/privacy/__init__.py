"""What runs and scores disclose: the leak meter, the privacy-utility trade-off, who saw what, opened requests."""
