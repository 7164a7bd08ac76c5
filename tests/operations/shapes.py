"""Whether what an operation gave has the shape that it says it has."""

from collections.abc import Iterator
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from accord.operations import find, results


def shape_of(operation: str) -> Any:
    annotation: str = find(operation).__annotations__["return"]
    return getattr(results, annotation.removeprefix("results."))


def misfits(value: object, shape: Any) -> list[str]:
    """A sentence for each place where they differ."""
    return [wrong for wrong, _ in _compare(value, shape, "it") if wrong]


def met(value: object, shape: Any) -> set[str]:
    """The names of the shapes that it and all within it have."""
    return {name for _, name in _compare(value, shape, "it") if name}


def _compare(value: object, shape: Any, at: str) -> Iterator[tuple[str, str]]:
    """What is wrong, or the name of a shape that is met."""
    kind = get_origin(shape) or shape
    if kind is UnionType:
        fitting = [one for one in get_args(shape) if type(value) is _plain(one)]
        if fitting:
            yield from _compare(value, fitting[0], at)
        else:
            yield f"{at} is {value!r}, which is no {shape}", ""
    elif type(value) is not _plain(shape):
        yield f"{at} is {value!r}, which is no {shape}", ""
    elif is_typeddict(shape):
        yield "", shape.__name__
        yield from _compare_fields(value, shape, at)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _compare(one, get_args(shape)[0], f"{at}[{number}]")


def _compare_fields(value: Any, shape: Any, at: str) -> Iterator[tuple[str, str]]:
    fields = get_type_hints(shape)
    for key in sorted(shape.__required_keys__ - value.keys()):
        yield f"{at} has no {key}", ""
    for key, one in value.items():
        if key in fields:
            yield from _compare(one, fields[key], f"{at}[{key!r}]")
        else:
            yield f"{at} has {key}, which {shape.__name__} has not", ""


def _plain(shape: Any) -> Any:
    """The class of what has this shape."""
    return dict if is_typeddict(shape) else get_origin(shape) or shape
