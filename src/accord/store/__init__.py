"""The store: one contract (contract.py), the one way to change it (transaction.py), and engines."""
