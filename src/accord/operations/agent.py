"""Who is there: registering, leaving, finding each other."""

import os

from accord.operations import operation
from accord.services import agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations.context import Context
    from accord.operations.kinds import Flag, OwnIdentity, Path


@operation(changes=True)
def register(
    context: "Context",
    *,
    identity: "OwnIdentity",
    force: "Flag" = False,
    resume: "Flag" = False,
    project: "Path | None" = None,
) -> "dict[str, Any]":
    """Register a name, and get the token to act under it."""
    if resume:
        _resume(context, identity)
    else:
        _register(context, identity, force, project or "")
    context.forget_token(identity)
    return {
        "identity": identity,
        "token_file": context.home.token_path(identity),
        "revision": context.revision(),
    }


@operation(changes=True)
def unregister(context: "Context", *, identity: "OwnIdentity") -> "dict[str, Any]":
    """Give a name back; its inbox is kept for whoever registers it next."""
    agents.unregister(context.store, context.actor(identity), context.now())
    context.home.drop_token(identity)
    context.forget_token(identity)
    return {"identity": identity}


@operation()
def discover(context: "Context") -> "dict[str, Any]":
    """Show who is registered, with how much mail is waiting, as of one moment."""
    from accord.services.discovery import everybody

    return {**everybody(context.store), "hub": None, "halted": context.halt.reason()}


def _register(context: "Context", identity: str, force: bool, project: str) -> None:
    """The token is on the disk before it is good: a registration cut short can be resumed."""
    token = os.urandom(16).hex()
    context.home.make()
    staged = context.home.stage_token(identity, token)
    actor = agents.Actor(identity, token, context.halt.count())
    try:
        agents.register(context.store, actor, context.now(), force, project)
    except BaseException:
        os.unlink(staged)
        raise
    context.home.keep_token(identity, staged)


def _resume(context: "Context", identity: str) -> None:
    for staged, token in context.home.staged_tokens(identity):
        if agents.holds(context.store, agents.Actor(identity, token)):
            context.home.keep_token(identity, staged)
    agents.resume(context.store, context.actor(identity))
