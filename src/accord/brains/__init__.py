"""Programs that are agents, one file each; `contract.py` says what such a file has."""
