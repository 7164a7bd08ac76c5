"""Gemini CLI. Each tool has a step of its own, and what goes on with a turn comes back as a prompt."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.brains.contract import Given

NEEDS = ("hook_event_name",)
WAITS = True


def means(event: str, given: "Given") -> str:
    return event


def proves(event: str, given: "Given") -> bool:
    return event == "stop"  # tools of one answer run side by side, and the model is asked again after the last


def said(given: "Given") -> "str | None":
    text = str(given.get("prompt_response", ""))  # what it was before, if the model was not asked since
    return "" if text == "[no response text]" else text


def pid(env: "Mapping[str, str]") -> int:
    return 0


def reach(env: "Mapping[str, str]") -> str:
    return ""


def answer(event: str, given: "Given", text: str) -> "dict[str, object]":
    if event == "stop":
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": given["hook_event_name"], "additionalContext": text}}
