"""Proofs over a set of routes; a failed proof gives a counter-example."""

from gateway.proofs.finding import RouteFinding, Severity
from gateway.proofs.prove import prove
from gateway.proofs.rules.inverse import prove_inverse

__all__ = ["RouteFinding", "Severity", "prove", "prove_inverse"]
