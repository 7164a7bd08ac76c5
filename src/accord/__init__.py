"""accord: AI coding agents and their people talk, share state and share work without races."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord import errors as errors
    from accord.api import open, open_async

__all__ = ["__version__", "errors", "open", "open_async"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """What programs use is loaded when they use it."""
    if name not in __all__:
        raise AttributeError(f"accord has no {name}")
    if name == "errors":
        __import__("accord.errors")
        return globals()[name]
    from accord import api

    return getattr(api, name)
