"""OpenCode. Its hooks are functions of a plugin (install/data/opencode.js), which shows what `accord hook` says."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.brains.contract import Given

NEEDS = ()
WAITS = False


def means(event: str, given: "Given") -> str:
    return event


def proves(event: str, given: "Given") -> bool:
    return given.get("answered") is True  # the plugin sees each answer of the model begin


def said(given: "Given") -> "str | None":
    return None


def pid(env: "Mapping[str, str]") -> int:
    return 0


def reach(env: "Mapping[str, str]") -> str:
    return ""


def answer(event: str, given: "Given", text: str) -> "dict[str, object]":
    return {"text": text}
