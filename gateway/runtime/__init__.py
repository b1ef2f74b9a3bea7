"""Puts endpoints, routes and archive to work; the only package with threads of its own."""
