"""register, unregister."""

from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def register(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("agent.register", words)
    line.answer(result, lambda: f"registered {result['identity']}; its token is in {result['token_file']}\n")


def unregister(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("agent.unregister", words)
    line.answer(result, lambda: f"unregistered {result['identity']}; its inbox is kept\n")


VERBS = {
    "register": Verb(register, "agent.register", positional=("identity",)),
    "unregister": Verb(unregister, "agent.unregister", positional=("identity",)),
}
