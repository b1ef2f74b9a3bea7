"""Proofs over a whole set of routes, each with a counter-example when it fails; no I/O."""

from gateway.proofs.finding import Finding, Severity
from gateway.proofs.inverse import prove_inverse
from gateway.proofs.prove import prove

__all__ = ["Finding", "Severity", "prove", "prove_inverse"]
