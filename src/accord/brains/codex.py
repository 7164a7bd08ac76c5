"""Codex. Its hooks are like those of Claude Code, but that each tool has a step of its own."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.brains.contract import Given

NEEDS = ("hook_event_name",)
WAITS = True


def means(event: str, given: "Given") -> str:
    return "" if given.get("agent_id") else event


def proves(event: str, given: "Given") -> bool:
    return event == "stop"  # tools of one answer end one after another, before the model is asked again


def said(given: "Given") -> "str | None":
    return None


def pid(env: "Mapping[str, str]") -> int:
    return 0


def reach(env: "Mapping[str, str]") -> str:
    return env.get("CODEX_HOME") or f"{env.get('HOME', '')}/.codex"


def answer(event: str, given: "Given", text: str) -> "dict[str, object]":
    if event == "stop":
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": given["hook_event_name"], "additionalContext": text}}
