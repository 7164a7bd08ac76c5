"""accord: AI coding agents and their people talk, share state and share work without races."""

__version__ = "0.1.0"
