"""Security rules of a Realtime Database: as much of their language as accord's own rules and these tests need."""

import re
from collections.abc import Callable
from typing import Any

from tests.servers.firebase_tree import as_stored

_TOKENS = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<regex>/(?:[^/\\]|\\.)+/)"""
    r"""|(?P<name>[$A-Za-z_]\w*)|(?P<sign>===|!==|==|!=|>=|<=|&&|\|\||[-+*%!<>?:.,()\[\]]))"""
)


class Data:
    """A place in the tree, as rules see it: before the write, or after."""

    def __init__(self, root: Any, path: tuple[str, ...] = ()) -> None:
        self._root = root
        self._path = path

    def child(self, path: str) -> "Data":
        return Data(self._root, self._path + tuple(part for part in str(path).split("/") if part))

    def parent(self) -> "Data":
        return Data(self._root, self._path[:-1])

    def value(self) -> Any:
        node = self._root
        for key in self._path:
            node = node.get(key) if isinstance(node, dict) else None
        return node

    def call(self, name: str, arguments: list[Any]) -> Any:
        value = self.value()
        if name == "val":
            return value
        if name == "exists":
            return value is not None
        if name == "child":
            return self.child(*arguments)
        if name == "parent":
            return self.parent()
        if name == "hasChild":
            return self.child(*arguments).value() is not None
        if name == "hasChildren":
            return isinstance(value, dict) and all(key in value for key in (arguments[0] if arguments else []))
        if name == "isString":
            return isinstance(value, str)
        if name == "isBoolean":
            return isinstance(value, bool)
        if name == "isNumber":
            return isinstance(value, int | float) and not isinstance(value, bool)
        raise SyntaxError(f"no method {name}")


class _Parser:
    """Makes a function of the variables from the text of an expression."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while text[place:].strip():
            found = _TOKENS.match(text, place)
            if not found or not found.lastgroup:
                raise SyntaxError(f"{text[place:]!r}")
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            place = found.end()
        self._next = 0

    def parse(self) -> Callable[[dict[str, Any]], Any]:
        whole = self._any_of()
        if self._next != len(self._tokens):
            raise SyntaxError(f"{self._tokens[self._next]}")
        return whole

    def _take(self, *wanted: str) -> str:
        if self._next < len(self._tokens) and self._tokens[self._next][1] in wanted:
            self._next += 1
            return self._tokens[self._next - 1][1]
        return ""

    def _need(self, wanted: str) -> None:
        if not self._take(wanted):
            raise SyntaxError(f"{wanted} is missing")

    def _any_of(self) -> Callable[[dict[str, Any]], Any]:
        left = self._all_of()
        while self._take("||"):
            left = _either(left, self._all_of())
        return left

    def _all_of(self) -> Callable[[dict[str, Any]], Any]:
        left = self._compared()
        while self._take("&&"):
            left = _both(left, self._compared())
        return left

    def _compared(self) -> Callable[[dict[str, Any]], Any]:
        left = self._sum()
        while sign := self._take("===", "!==", "==", "!=", ">=", "<=", ">", "<"):
            left = _operation(sign, left, self._sum())
        return left

    def _sum(self) -> Callable[[dict[str, Any]], Any]:
        left = self._negated()
        while sign := self._take("+", "-", "*", "%"):
            left = _operation(sign, left, self._negated())
        return left

    def _negated(self) -> Callable[[dict[str, Any]], Any]:
        if self._take("!"):
            inner = self._negated()
            return lambda names: not inner(names)
        return self._reached()

    def _reached(self) -> Callable[[dict[str, Any]], Any]:
        """A value, and what is reached from it by dots and calls."""
        reached = self._value()
        while self._take("."):
            _, name = self._tokens[self._next]
            self._next += 1
            arguments = None
            if self._take("("):
                arguments = self._listed(")")
            reached = _member(reached, name, arguments)
        return reached

    def _listed(self, end: str) -> list[Callable[[dict[str, Any]], Any]]:
        found: list[Callable[[dict[str, Any]], Any]] = []
        while not self._take(end):
            if found:
                self._need(",")
            found.append(self._any_of())
        return found

    def _value(self) -> Callable[[dict[str, Any]], Any]:
        kind, text = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            return lambda names: float(text)
        if kind == "string":
            return lambda names: re.sub(r"\\(.)", r"\1", text[1:-1])
        if kind == "regex":
            return lambda names: re.compile(text[1:-1].replace("\\/", "/"))
        if kind == "name":
            return lambda names: {"null": None, "true": True, "false": False, **names}[text]
        if text == "(":
            inner = self._any_of()
            self._need(")")
            return inner
        if text == "[":
            parts = self._listed("]")
            return lambda names: [part(names) for part in parts]
        raise SyntaxError(text)


def _either(left: Callable[..., Any], right: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda names: left(names) or right(names)


def _both(left: Callable[..., Any], right: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda names: left(names) and right(names)


def _operation(sign: str, left: Callable[..., Any], right: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    def run(names: dict[str, Any]) -> Any:
        one, other = left(names), right(names)
        if sign in ("==", "==="):
            return one == other
        if sign in ("!=", "!=="):
            return one != other
        if isinstance(one, str) and isinstance(other, float) and sign == "+":
            return one + f"{other:g}"
        return {
            ">": lambda: one > other,
            "<": lambda: one < other,
            ">=": lambda: one >= other,
            "<=": lambda: one <= other,
            "+": lambda: one + other,
            "-": lambda: one - other,
            "*": lambda: one * other,
            "%": lambda: one % other,
        }[sign]()

    return run


def _member(
    reached: Callable[..., Any], name: str, arguments: list[Callable[..., Any]] | None
) -> Callable[[dict[str, Any]], Any]:
    def run(names: dict[str, Any]) -> Any:
        owner = reached(names)
        if arguments is None:
            return float(len(owner)) if name == "length" else owner.get(name)
        given = [argument(names) for argument in arguments]
        if isinstance(owner, Data):
            return owner.call(name, given)
        if name == "matches":
            return bool(given[0].search(owner))
        if name in ("beginsWith", "endsWith", "contains"):
            return {"beginsWith": owner.startswith, "endsWith": owner.endswith, "contains": owner.__contains__}[name](
                *given
            )
        raise SyntaxError(f"no method {name}")

    return run


class Rules:
    """Who may read and write what. A rule that fails to be computed is false."""

    def __init__(self, rules: dict[str, Any]) -> None:
        self._rules = rules["rules"]
        _check(self._rules)

    def may_read(self, root: Any, path: tuple[str, ...], auth: Any, now: float) -> bool:
        return self._granted(".read", root, root, path, auth, now)

    def may_write(self, old: Any, new: Any, path: tuple[str, ...], auth: Any, now: float) -> bool:
        if not self._granted(".write", old, new, path, auth, now):
            return False
        return self._is_valid(self._rules, (), {}, old, new, path, auth, now)

    def _granted(self, kind: str, old: Any, new: Any, path: tuple[str, ...], auth: Any, now: float) -> bool:
        """A rule anywhere on the way down to the place grants it."""
        rules = self._rules
        wild: dict[str, Any] = {}
        for depth in range(len(path) + 1):
            here = {**wild, **_variables(old, new, path[:depth], auth, now)}
            if kind in rules and _holds(rules[kind], here):
                return True
            if depth < len(path):
                found = _below(rules, path[depth])
                if found is None:
                    return False
                rules, name = found
                wild = {**wild, **({name: path[depth]} if name else {})}
        return False

    def _is_valid(
        self, rules: Any, place: tuple[str, ...], wild: dict[str, Any], old: Any, new: Any, path: tuple[str, ...],
        auth: Any, now: float,
    ) -> bool:  # fmt: skip
        """All `.validate` on the way to the place and below it hold, where something is left."""
        value = Data(new, place).value()
        if value is None:
            return True
        variables = {**wild, **_variables(old, new, place, auth, now)}
        if ".validate" in rules and not _holds(rules[".validate"], variables):
            return False
        keys = [path[len(place)]] if len(place) < len(path) else list(value) if isinstance(value, dict) else []
        for key in keys:
            found = _below(rules, key)
            if found is not None:
                inner = {**wild, **({found[1]: key} if found[1] else {})}
                if not self._is_valid(found[0], (*place, key), inner, old, new, path, auth, now):
                    return False
        return True


def _below(rules: dict[str, Any], key: str) -> tuple[dict[str, Any], str] | None:
    if key in rules and not key.startswith((".", "$")):
        return rules[key], ""
    for name in rules:
        if name.startswith("$"):
            return rules[name], name
    return None


def _variables(old: Any, new: Any, path: tuple[str, ...], auth: Any, now: float) -> dict[str, Any]:
    return {
        "auth": auth,
        "now": now * 1000,
        "root": Data(old),
        "data": Data(old, path),
        "newData": Data(new, path),
    }


def _holds(rule: Any, variables: dict[str, Any]) -> bool:
    if isinstance(rule, bool):
        return rule
    try:
        return bool(_Parser(rule).parse()(variables))
    except (AttributeError, TypeError, KeyError):
        return False


def _check(rules: Any) -> None:
    """Whatever stands in the rules can be read, and knows no words of its own."""
    for key, rule in rules.items():
        if key in (".read", ".write", ".validate"):
            if not isinstance(rule, bool):
                _Parser(rule).parse()
        elif key == ".indexOn":
            continue
        elif key.startswith("."):
            raise SyntaxError(key)
        else:
            as_stored(rule and {key.lstrip("$"): True}, lambda: 0.0)
            _check(rule)
