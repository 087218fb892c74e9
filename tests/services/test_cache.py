"""What is worked out once stays at hand, a few at a time, and is never older than what it was made of."""

from backend.services.cache import Shelf


def test_a_thing_is_made_once_for_a_key():
    shelf, made = Shelf(2), []
    for key in ("a", "a", "b", "a"):
        assert shelf.get(key, lambda key=key: made.append(key) or key.upper()) == key.upper()
    assert made == ["a", "b"]


def test_the_oldest_makes_room():
    shelf, made = Shelf(2), []
    for key in ("a", "b", "c", "b", "a"):
        shelf.get(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "c", "a"]


def test_what_is_dropped_is_made_anew():
    shelf = Shelf(2)
    shelf.get("a", lambda: 1)
    shelf.drop("a")
    shelf.drop("unknown")
    assert shelf.get("a", lambda: 2) == 2
