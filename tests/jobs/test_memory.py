"""What large work leaves behind is looked for before its memory goes back to the machine, where that was asked for."""

import gc
import weakref

from backend.jobs.memory import give_back


class Ring:
    """Holds itself, so that only a search for garbage finds it."""

    def __init__(self):
        self.itself = self


def test_what_nobody_holds_is_gone_once_memory_is_given_back():
    gc.disable()
    try:
        left = weakref.ref(Ring())
        give_back(collect=False)
        assert left() is not None
        give_back()
        assert left() is None
    finally:
        gc.enable()
