"""Long work: in the background or not, it can be followed and stopped. Does not know what the work is.

Who follows makes a :class:`Job`; who works asks and reports in :mod:`backend.jobs.work`, whoever follows.
"""

from backend.jobs.job import Job, Waits
from backend.jobs.work import Silence

__all__ = ["Job", "Silence", "Waits"]
