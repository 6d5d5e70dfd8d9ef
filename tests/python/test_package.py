"""The package as such: what it shows, that all of it is documented, that the examples in the texts are true."""

import doctest
import importlib
import inspect
import os
import pydoc
import subprocess
import unittest

import sdr

MODULES = [importlib.import_module(f"sdr.{name}") for name in ("units", "model", "grid", "planner", "simulation")]


class Package(unittest.TestCase):
    def test_everything_shown_is_documented(self) -> None:
        for name in sdr.__all__:
            shown = getattr(sdr, name)
            self.assertTrue(shown.__doc__, name)
            if not inspect.isclass(shown):
                continue
            for member, value in vars(shown).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    self.assertTrue(inspect.getdoc(value), f"{name}.{member}")

    def test_help_names_every_function(self) -> None:
        text = pydoc.render_doc(sdr, renderer=pydoc.plaintext)
        for name in sdr.__all__:
            self.assertIn(name, text)

    def test_examples_in_docstrings_are_true(self) -> None:
        attempted = 0
        for module in MODULES:
            result = doctest.testmod(module)
            self.assertEqual(result.failed, 0, module.__name__)
            attempted += result.attempted
        self.assertGreater(attempted, 5)

    def test_version_is_that_of_the_command(self) -> None:
        command = os.environ.get("SDR_COMMAND")
        if not command:
            self.skipTest("SDR_COMMAND does not name the sdr command")
        said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout
        self.assertIn(sdr.__version__, said)


if __name__ == "__main__":
    unittest.main()
