"""A process may open as many files as it is allowed to, and says when few are left."""

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="POSIX alone has limits of open files")

LIMITED = """
import os, resource
from backend.ops.open_files import nearly_all_open, raise_limit
from backend.remark import Remark
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))
assert raise_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 128
assert not nearly_all_open()
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(115)]
assert nearly_all_open()
for one in held:
    os.close(one)
assert not nearly_all_open() and raise_limit() == 128
"""


def test_the_limit_is_raised_as_far_as_it_may_be_and_the_end_is_seen():
    subprocess.run([sys.executable, "-c", LIMITED], check=True, timeout=60)
