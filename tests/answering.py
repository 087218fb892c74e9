"""Services of which a test gives some answers itself."""

from collections.abc import Callable, Mapping


class Answering:
    """A service that gives some answers set beforehand and has all others from the real one.

    Answers are named as whoever uses it asks for them, from Glassleaf on: ``compliance.assess``.
    """

    def __init__(self, real: object, answers: Mapping[str, Callable[..., object]]) -> None:
        self._real, self._answers = real, answers

    def __getattr__(self, name: str) -> object:
        if name in self._answers:
            return self._answers[name]
        inside = {key.removeprefix(f"{name}."): a for key, a in self._answers.items() if key.startswith(f"{name}.")}
        found = getattr(self._real, name)
        return Answering(found, inside) if inside else found
