"""Claude Code. It asks its hooks after each batch of tools, and gives every session a socket to be written to."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.brains.contract import Given

NEEDS = ("hook_event_name",)
WAITS = True


def means(event: str, given: "Given") -> str:
    if given.get("agent_id"):
        return ""  # its session is that of who started it, but what it is told the other does not learn
    if event == "prompt" and given.get("prompt", "").startswith("<task-notification>"):
        return "step"  # something that ran in the background has ended
    return event


def proves(event: str, given: "Given") -> bool:
    return event in ("step", "stop")  # a step comes after all tools of one answer, not after each


def said(given: "Given") -> "str | None":
    return None


def pid(env: "Mapping[str, str]") -> int:
    text = env.get("CLAUDE_PID", "")
    return int(text) if text.isascii() and text.isdigit() else 0


def reach(env: "Mapping[str, str]") -> str:
    socket, token = env.get("CLAUDE_CODE_MESSAGING_SOCKET", ""), env.get("CLAUDE_CODE_MESSAGING_TOKEN", "")
    return f"{token} {socket}" if socket and token else ""


def answer(event: str, given: "Given", text: str) -> "dict[str, object]":
    if event == "stop":
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": given["hook_event_name"], "additionalContext": text}}
