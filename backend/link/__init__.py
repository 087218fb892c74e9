"""Parties at their own companies: identities, the agreement they sign, and the link that carries their messages.

Knows certificates, addresses and bytes; what a message says is for :mod:`backend.protocols`. gRPC and joserfc are imported here alone, when
they are first used (extra `link`).
"""
