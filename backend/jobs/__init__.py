"""Long work that can be followed and stopped, in the background or not. Does not know what the work is.

The follower makes a :class:`Job`; the work asks and reports in :mod:`backend.jobs.work`.
"""

from backend.jobs.job import Job, Waits
from backend.jobs.work import Silence

__all__ = ["Job", "Silence", "Waits"]
