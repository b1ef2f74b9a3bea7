"""Proofs over a whole set of routes, each with a counter-example when it fails; no I/O."""

from gateway.proofs.finding import Finding, Severity
from gateway.proofs.prove import prove
from gateway.proofs.rules.inverse import prove_inverse

__all__ = ["Finding", "Severity", "prove", "prove_inverse"]
