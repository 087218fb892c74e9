"""Outlines drawn as HTML and as PDF."""
