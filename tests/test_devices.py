"""The tests of `on_a_device`, in a process of their own.

Once a tensor of a device has been differentiated, torch has a thread for that device, and forked
workers cannot differentiate any more.
"""

from __future__ import annotations

import subprocess
import sys


def test_nothing_crosses_from_a_gpu_to_the_cpu_unasked():
    command = [sys.executable, "-m", "pytest", "-q", "tests/on_a_device.py"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stdout[-8000:]
