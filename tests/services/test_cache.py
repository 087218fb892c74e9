"""What is worked out once stays at hand, a few at a time, and is never older than what it was made of."""

from backend.services.cache import Cache


def test_a_thing_is_made_once_for_a_key():
    cache, made = Cache(2), []
    for key in ("a", "a", "b", "a"):
        assert cache.get(key, lambda key=key: made.append(key) or key.upper()) == key.upper()
    assert made == ["a", "b"]


def test_the_oldest_makes_room():
    cache, made = Cache(2), []
    for key in ("a", "b", "c", "b", "a"):
        cache.get(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "c", "a"]


def test_what_is_dropped_is_made_again():
    cache = Cache(2)
    cache.get("a", lambda: 1)
    cache.drop("a")
    cache.drop("unknown")
    assert cache.get("a", lambda: 2) == 2
