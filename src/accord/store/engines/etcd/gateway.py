"""etcd's JSON gateway: requests with their logins and retries, and what its errors mean."""

from time import monotonic

from accord import errors, jsontext
from accord.store.contract import Moved
from accord.store.remote.http import Client, Endpoint, NoAnswer, NotSent, NotTrusted, Stream, tls_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.etcd.requests import Message
    from accord.store.remote.http import Answer
    from accord.store.remote.place import Place

PORT = 2379
_ATTEMPT_S = 3.0  # until the answer to a read begins, before another member is asked
_SLOWEST = 100_000  # bytes of a commit that go out in a second
_ANSWER_S = 9.0  # for a commit; the server gives up after 7 s, and one that does not even say so was stopped
_GONE_S = 2.0  # as long as nobody listens, somebody may be starting it
_ELECTION_S = 10.0  # without a leader; choosing one takes a second or three
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.3

# A member that has no leader says so at once, instead of when its patience ends.
_NEEDS_LEADER = {"Grpc-Metadata-hasleader": "true", "Content-Type": "application/json"}

_NOT_DONE = ("no leader", "proposal dropped", "too many requests", "auth store is old", "revision in header is old")
_REFUSALS = ("permission denied", "authentication", "user name", "not enabled")


class Gateway:
    """Threads may share it."""

    def __init__(self, place: "Place") -> None:
        self.path = place.shown
        self.revision = 0  # of etcd, as of the last answer
        self._login = (place.user, place.password) if place.user else None
        self._token = ""
        options = place.options
        secure = options["tls"] == "yes" or bool(options["ca"] or options["cert"])
        if options["tls"] not in {"", "yes", "no"} or (secure and options["tls"] == "no"):
            raise place.wrong("tls is yes or no, and ca and cert need it")
        self._is_secure = secure
        try:
            tls = tls_context(options["ca"], options["cert"], options["key"]) if secure else None
        except OSError as error:
            raise place.wrong(f"ca, cert and key cannot be used: {error.strerror or error}") from None
        addresses = [place.address(host, PORT) for host in place.hosts or ["127.0.0.1"]]
        self._client = Client([Endpoint(*address, secure) for address in addresses], tls)

    def txn(
        self,
        compare: "list[Message]",
        success: "list[Message]",
        failure: "list[Message]" = [],  # noqa: B006 - nobody changes it
        timeout_s: float = 30.0,
        safe: bool = True,
    ) -> "Message":
        """Its answer. What is not `safe` writes: it raises `OutcomeUnknown` when it may be done and nobody said so."""
        asked = {"compare": compare, "success": success, "failure": failure}
        answer = self.ask("kv/txn", asked, timeout_s, safe)
        self.revision = int(answer["header"]["revision"])
        return answer

    def ask(self, what: str, asked: "Message", timeout_s: float, safe: bool) -> "Message":
        body = jsontext.dumps(asked).encode()
        started = monotonic()
        tries = 0
        renewed = False  # the token
        while True:
            left_s = timeout_s - (monotonic() - started)
            try:
                longest_s = timeout_s if safe else _ANSWER_S + len(body) / _SLOWEST
                answer = self._post(what, body, min(max(left_s, 0.1), longest_s), safe)
                if answer.status == 200:
                    return _answer(answer.body)
                patience_s = self._may_be_asked_again(answer, safe, renewed)
                self._client.avoid(answer.endpoint)
                reason = _reason(answer.body, answer.status)
                renewed = renewed or "auth token" in reason
            except NotTrusted as error:
                raise errors.EngineRefused(path=self.path, reason=str(error)) from None
            except NotSent as error:
                reason, patience_s = str(error), _GONE_S
            except NoAnswer as error:
                if not safe:
                    raise errors.OutcomeUnknown(path=self.path, reason=str(error)) from None
                reason, patience_s = str(error), _ELECTION_S
            if monotonic() - started >= min(patience_s, timeout_s):
                raise self.unreachable(reason)
            pause(tries)
            tries += 1

    def status(self) -> "tuple[Message, float]":
        """What a member says of itself, and its clock's seconds since 1970, to half a second."""
        from email.utils import parsedate_to_datetime

        try:
            answer = self._post("maintenance/status", b"{}", _ANSWER_S, True)
            self._raise_known(_reason(answer.body, answer.status), answer.status)
            return _answer(answer.body), parsedate_to_datetime(answer.headers["date"]).timestamp() + 0.5
        except (NotSent, NoAnswer) as error:
            raise self.unreachable(str(error)) from None

    def watch(self, asked: "Message", timeout_s: float) -> Stream:
        """The stream of a watch; any error is `NotSent` or `NoAnswer`, and another member should be asked."""
        body = jsontext.dumps({"create_request": asked}).encode()
        stream = self._client.stream("POST", "/v3/watch", body, self._headers(), timeout_s)
        if stream.status != 200:
            text = stream.rest(1.0)
            self.leave(stream)
            if stream.status == 401 or "auth token" in _reason(text, stream.status):
                self.forget_token()
            raise NoAnswer(_reason(text, stream.status))
        return stream

    def forget_token(self) -> None:
        """etcd forgets it after a while, and when a member starts."""
        self._token = ""

    def leave(self, stream: Stream) -> None:
        """It does not answer as it should: ask another member the next time."""
        stream.close()
        self._client.avoid(stream.endpoint)

    def close(self) -> None:
        self._client.close()

    def unreachable(self, reason: str) -> errors.EngineUnreachable:
        if "no leader" in reason or "timed out" in reason or "dropped" in reason:
            reason = f"it has no majority of its members ({reason})"
        if "closed the connection" in reason and not self._is_secure:
            reason += "; if it wants TLS, say ?tls=yes, or ?ca=FILE"
        return errors.EngineUnreachable(path=self.path, reason=reason)

    def _post(self, what: str, body: bytes, timeout_s: float, safe: bool) -> "Answer":
        attempt_s = _ATTEMPT_S if safe else timeout_s
        return self._client.request("POST", f"/v3/{what}", body, self._headers(), timeout_s, safe, attempt_s)

    def _headers(self) -> dict[str, str]:
        if self._login is None:
            return _NEEDS_LEADER
        return {**_NEEDS_LEADER, "Authorization": self._token or self._authenticate(self._login)}

    def _authenticate(self, login: tuple[str, str]) -> str:
        body = jsontext.dumps({"name": login[0], "password": login[1]}).encode()
        answer = self._client.request("POST", "/v3/auth/authenticate", body, _NEEDS_LEADER, _ANSWER_S, True, _ANSWER_S)
        if answer.status != 200:
            self._may_be_asked_again(answer, True, True)
            raise NotSent(_reason(answer.body, answer.status))
        self._token = str(_answer(answer.body)["token"])
        return self._token

    def _may_be_asked_again(self, answer: "Answer", safe: bool, renewed: bool) -> float:
        """For how long; the error that it means if it may not."""
        reason = _reason(answer.body, answer.status)
        if "auth token" in reason and not renewed:
            self.forget_token()
            return _ELECTION_S
        self._raise_known(reason, answer.status)
        if not safe and not any(words in reason for words in _NOT_DONE):
            raise errors.OutcomeUnknown(path=self.path, reason=reason)
        return _ELECTION_S

    def _raise_known(self, reason: str, status: int) -> None:
        if "compacted" in reason or "future revision" in reason:
            raise Moved
        if "space exceeded" in reason:
            raise errors.StorageFull(path=self.path)
        if "too large" in reason or "too many operations" in reason:
            cure = "start it with --max-request-bytes and --max-txn-ops no smaller than etcd's own"
            raise errors.EngineUnfit(path=self.path, reason=f"a commit may be refused ({reason})", cure=cure)
        if status in {401, 403} or any(words in reason for words in _REFUSALS):
            raise errors.EngineRefused(path=self.path, reason=reason)
        if status == 404:
            raise errors.EngineTooOld(path=self.path, found="no etcd with a gateway at /v3/", needed="etcd 3.4")


def pause(tries: int) -> None:
    """Longer each time, and of random length, so that rivals do not meet again."""
    from os import urandom
    from time import sleep

    longest = min(_FIRST_PAUSE_S * (1 << min(tries, 10)), _LONGEST_PAUSE_S)
    sleep(longest * (0.25 + 0.75 * int.from_bytes(urandom(2)) / 65535))


def _answer(text: bytes) -> "Message":
    """What every answer of etcd begins with tells it from those of other servers."""
    try:
        found: Message = jsontext.loads_quickly(text)  # type: ignore[assignment]
        found["header"]["cluster_id"]
    except (errors.InvalidJson, KeyError, TypeError):
        raise NoAnswer("what answers there is no etcd") from None
    return found


def _reason(text: bytes, status: int) -> str:
    try:
        return str(jsontext.loads_quickly(text)["message"])  # type: ignore[index]
    except (errors.InvalidJson, KeyError, TypeError):
        return f"it answers with status {status}"
