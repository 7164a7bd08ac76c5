"""What accord knows of a program that is an agent: so far, its hooks.

A file here bears the name that users type (`--brain claude`) and has these names at its top level. It is imported by
every hook that the agent runs, and imports nothing itself.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    Given = Mapping[str, Any]

    class Brain(Protocol):
        NEEDS: tuple[str, ...]  # what each of its hooks brings besides a session_id
        WAITS: bool  # whether its user can wait for the hook at the end of a turn

        def means(self, event: str, given: Given) -> str:
            """What the event is to the session: itself; "step", for a prompt that is no person's; "", for one that is
            not its own, as of an agent that it has started."""
            ...

        def proves(self, event: str, given: Given) -> bool:
            """Whether the event shows that the model has answered since the last hand-over."""
            ...

        def said(self, given: Given) -> str | None:
            """What the model has said by the end of a turn; None: the program runs no such hook but after an answer."""
            ...

        def pid(self, env: Mapping[str, str]) -> int:
            """The process of the session; 0: it does not say, and is the one that runs the hook."""
            ...

        def reach(self, env: Mapping[str, str]) -> str:
            """How the session can be woken; "": it cannot."""
            ...

        def answer(self, event: str, given: Given, text: str) -> dict[str, Any]:
            """What a hook prints, to put a text before the model; at the end of a turn, to go on with it."""
            ...
