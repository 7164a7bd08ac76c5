"""The rules, as transactions on a store: what may be done, and what it changes."""
