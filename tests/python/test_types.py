"""The types of the package, by mypy: strict within, and the stub has the names that the extension has."""

import os
import subprocess
import sys
import unittest

import sdr


class Types(unittest.TestCase):
    def run_tool(self, *arguments: str) -> None:
        environment = dict(os.environ, MYPYPATH=os.path.dirname(os.path.dirname(sdr.__file__)))
        done = subprocess.run(
            [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=300, env=environment
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_package_is_typed(self) -> None:
        cache = ("--cache-dir", os.environ.get("SDR_MYPY_CACHE", os.devnull))
        self.run_tool("mypy", "--strict", *cache, "-p", "sdr")

    def test_stubs_have_the_names_of_the_module(self) -> None:
        allowed = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stubtest_allowlist.txt")
        self.run_tool("mypy.stubtest", "sdr._sdr", "--allowlist", allowed)


if __name__ == "__main__":
    unittest.main()
