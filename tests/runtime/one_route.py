"""The smallest configuration: one route between two brokers in memory."""

ONE_ROUTE = """\
gateway: {name: test}
endpoints:
  here: {kind: memory, dialect: mqtt}
  there: {kind: memory, dialect: mqtt}
routes:
  all:
    from: {endpoint: here, pattern: "a/{rest...}"}
    to: {endpoint: there, template: "b/{rest...}"}
"""
