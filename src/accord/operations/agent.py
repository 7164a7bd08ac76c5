"""Who is there: registering, leaving, finding each other."""

import os

from accord import errors
from accord.operations import OPERATOR, as_is, operation
from accord.services import agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Flag, Folder, OwnIdentity


@operation(changes=True, beyond=True)
def register(
    context: "Context",
    *,
    identity: "OwnIdentity",
    force: "Flag" = False,
    resume: "Flag" = False,
    project: "Folder | None" = None,
) -> "results.Registered":
    """Register a name, and get the token to act under it."""
    if context.caller.uid != os.geteuid():
        raise errors.GoLocal(reason="the token would be in a file of another user")
    if resume:
        _resume(context, identity)
    else:
        _register(context, identity, force, project or "")
    context.forget_token(identity)
    return {
        "identity": identity,
        "token_file": context.tokens.path_of(identity),
        "revision": context.revision(),
    }


@operation(changes=True, beyond=True)
def unregister(context: "Context", *, identity: "OwnIdentity") -> "results.Unregistered":
    """Give a name back; its inbox is kept for whoever registers it next."""
    context.home.make()
    with context.tokens.alone(context.settings["lock_timeout_s"]):
        agents.unregister(context.store, context.actor(identity), context.now(), context.key("unregister"))
        context.tokens.drop(identity)
    context.forget_token(identity)
    return {"identity": identity}


@operation()
def discover(context: "Context") -> "results.Everybody":
    """Show who is registered, with how much mail is waiting, as of one moment."""
    from accord.services.discovery import everybody

    found = everybody(context.store, context.halt.count(), context.listeners())
    hub = context.hub.status()
    return as_is({**found, "hub": hub if hub["running"] else None, "halted": context.halt.reason()})


def _register(context: "Context", identity: str, force: bool, project: str) -> None:
    """The token is on the disk before it is good: a registration cut short can be resumed."""
    context.home.make()
    context.home.make_operator_token()
    token = os.urandom(16).hex()
    halts = context.halt.count()
    actor = agents.Actor(identity, agents.hash_token(token), halts)
    by = agents.Actor(context.agent, halts=halts) if context.agent else None
    with context.tokens.alone(context.settings["lock_timeout_s"]):
        staged = context.tokens.stage(identity, token)
        try:
            good = agents.register(context.store, actor, context.now(), force, project, by, context.key("register"))
        except errors.OutcomeUnknown:
            raise  # should it have happened, --resume finds the token
        except BaseException:
            os.unlink(staged)
            raise
        if good == actor.token_hash:
            context.tokens.keep(identity, staged)
            return
        # An earlier try of this request did it, and may have died before it kept its token.
        os.unlink(staged)
        for earlier, earlier_token in context.tokens.staged(identity):
            if agents.hash_token(earlier_token) == good:
                context.tokens.keep(identity, earlier)


def _resume(context: "Context", identity: str) -> None:
    if context.right == OPERATOR:
        context.forget_token(identity)  # whose token is the one that lies in the home, if it still does
    for staged, token in context.tokens.staged(identity):
        if agents.holds(context.store, agents.Actor(identity, agents.hash_token(token))):
            context.tokens.keep(identity, staged)
    agents.resume(context.store, context.actor(identity))
