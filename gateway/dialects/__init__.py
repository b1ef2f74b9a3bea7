"""How each of the seven systems spells names and subscriptions."""
