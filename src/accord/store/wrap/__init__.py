"""Wrappers: each takes a store and returns a store."""
