"""Configurations as values by dotted name, and in which of them two differ."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def flat(value: Any, before: str = "") -> dict[str, Any]:
    """A nested configuration as values by dotted name."""
    if isinstance(value, Mapping) and value:
        found: dict[str, Any] = {}
        for key, inner in value.items():
            found |= flat(inner, f"{before}.{key}" if before else str(key))
        return found
    return {before: value}


def differences(
    before: Mapping[str, Any], now: Mapping[str, Any], ignored: Collection[str] = ()
) -> dict[str, tuple[Any, Any]]:
    """Values before and now by dotted name, where two flat configurations differ."""
    return {
        key: (before.get(key), now.get(key))
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key) and not is_below(key, ignored)
    }


def shown_differences(found: Mapping[str, tuple[Any, Any]]) -> str:
    """Such values as text."""
    return "; ".join(f"{key}: {old!r} -> {new!r}" for key, (old, new) in found.items())


def is_below(key: str, names: Iterable[str]) -> bool:
    """Whether a dotted name is one of these, or below one of them."""
    return any(key == name or key.startswith(f"{name}.") for name in names)
