"""JMS message selectors: grammar, syntax tree, type rules and evaluation."""
