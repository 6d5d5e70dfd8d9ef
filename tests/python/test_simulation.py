"""The simulator from Python: repeatable on any number of threads, close to the theory, interruptible."""

import os
import signal
import threading
import time
import unittest
from typing import Callable

import numpy as np

import sdr

PATH = sdr.Path(rtt="25ms", rate="10Gbit", loss=1e-2)


class Simulate(unittest.TestCase):
    def test_threads_do_not_matter(self) -> None:
        one = sdr.simulate(PATH, "1MiB", "ec-rs", 60, seed=4, jobs=1)
        many = sdr.simulate(PATH, "1MiB", "ec-rs", 60, seed=4, jobs=5)
        np.testing.assert_array_equal(one.completion, many.completion)
        for name in ("packets_sent", "packets_lost", "chunks_recovered", "controls_answered"):
            np.testing.assert_array_equal(getattr(one, name), getattr(many, name))
        self.assertEqual((one.completion.dtype, one.packets_sent.dtype), (np.float64, np.uint64))
        self.assertFalse(np.array_equal(one.completion, sdr.simulate(PATH, "1MiB", "ec-rs", 60, seed=5).completion))

    def test_a_shorter_run_is_the_beginning_of_a_longer_one(self) -> None:
        few, many = (sdr.simulate(PATH, "256KiB", "sr-nack", runs) for runs in (5, 30))
        np.testing.assert_array_equal(few.completion, many.completion[:5])

    def test_the_protocol_does_what_the_theory_says(self) -> None:
        for scheme in ("sr-rto", "sr-nack", "ec-rs"):
            result = sdr.simulate(PATH, "1MiB", scheme, 300, seed=11)
            assert result.theory is not None
            self.assertAlmostEqual(result.mean / result.theory.mean, 1, delta=0.05, msg=scheme)

    def test_failed_writes_are_results(self) -> None:
        result = sdr.simulate(PATH, 4096, "sr-nack", 2, link="outage=0s+60min")
        self.assertTrue(np.all(np.isnan(result.completion)))
        self.assertEqual(sorted(result.failures), [0, 1])
        self.assertTrue(np.isnan(result.mean) and np.isnan(result.quantile(0.5)))
        self.assertIsNone(result.theory)
        self.assertIn("2 failed", repr(result))

    def test_refusals_name_the_field_the_value_and_the_range(self) -> None:
        def packets(packet: int, chunk: int) -> object:
            return sdr.simulate(sdr.Path(0, 1e9, packet=packet, chunk=chunk), 1, "sr-nack")

        refused: list[tuple[str, Callable[[], object]]] = [
            (r"link: unknown key \"los\"; the keys are", lambda: sdr.simulate(PATH, 1, "sr-nack", link="los=1")),
            (r"link: rtt is given twice", lambda: sdr.simulate(PATH, 1, "sr-nack", link="rtt=1ms")),
            (r"link: reorder=2 is not a share from 0 to 1", lambda: sdr.simulate(PATH, 1, "sr-nack", link="reorder=2")),
            (r"size 0 B? ?is not from 1 B to", lambda: sdr.simulate(PATH, 0, "sr-nack")),
            (r"runs 0 is not from 1 to", lambda: sdr.simulate(PATH, 1, "sr-nack", runs=0)),
            (r"seed -1 is not from 0 to", lambda: sdr.simulate(PATH, 1, "sr-nack", seed=-1)),
            (r"packet 1001 bytes is not a multiple of 8", lambda: packets(1001, 1001)),
            (r"chunk 6000 bytes is not a multiple", lambda: packets(4096, 6000)),
            (r"power of two", lambda: packets(4096, 3 * 4096)),
            (r"'tcp' is not a reliability scheme", lambda: sdr.simulate(PATH, 1, "tcp")),
            (r"the protocol has no rto_rtts", lambda: sdr.simulate(PATH, 1, sdr.Scheme("ec-rs", rto_rtts=3))),
            (r"quantile 1\.5 is not from 0 to 1", lambda: sdr.simulate(PATH, 1, "sr-nack").quantile(1.5)),
        ]
        for message, ask in refused:
            with self.subTest(message):
                self.assertRaisesRegex(ValueError, message, ask)


class LongWork(unittest.TestCase):
    """What takes hours here is ended by Ctrl-C, and lets other threads run meanwhile."""

    def interrupt(self, work: Callable[[], object]) -> None:
        turns = 0

        def press() -> None:
            nonlocal turns
            end = time.monotonic() + 0.5
            while time.monotonic() < end:  # runs only while the interpreter is free
                turns += 1
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        presser = threading.Thread(target=press)
        presser.start()
        with self.assertRaises(KeyboardInterrupt):
            work()
        presser.join()
        self.assertGreater(turns, 2)

    def setUp(self) -> None:
        self.before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def tearDown(self) -> None:
        signal.signal(signal.SIGINT, self.before)

    def test_samples(self) -> None:
        self.interrupt(lambda: sdr.samples(PATH, "1GiB", "ec-rs", 10_000_000))

    def test_allreduce(self) -> None:
        self.interrupt(lambda: sdr.Allreduce(PATH, "1GiB", "sr-rto", 64).samples(10_000_000))

    def test_simulate(self) -> None:
        self.interrupt(lambda: sdr.simulate(PATH, "1MiB", "sr-nack", 200_000, jobs=1))

    def test_grid(self) -> None:
        losses = np.full(2_000_000, 1e-2)
        self.interrupt(lambda: sdr.mean("32GiB", losses, rtt="25ms", rate="400Gbit", scheme="ec-rs", jobs=1))


if __name__ == "__main__":
    unittest.main()
