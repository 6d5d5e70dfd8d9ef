"""The module against the command: `sdr plan --json` and `sdr sim --json` give the numbers that Python gets.

SDR_COMMAND names the built command.
"""

import json
import os
import subprocess
import unittest
from typing import Any

import numpy as np

import sdr

COUNTS = (
    "packets_sent packets_lost queue_drops duplicate_packets late_packets chunks_sent chunks_retransmitted "
    "parity_chunks_sent chunks_recovered fallbacks controls_sent controls_answered"
).split()


def command(*arguments: str) -> Any:
    done = subprocess.run(
        [os.environ["SDR_COMMAND"], *arguments, "--json"], check=True, capture_output=True, text=True, timeout=120
    )
    return json.loads(done.stdout)


@unittest.skipUnless(os.environ.get("SDR_COMMAND"), "SDR_COMMAND does not name the sdr command")
class Command(unittest.TestCase):
    def check_simulation(self, result: sdr.Simulation, said: Any) -> None:
        times = said["completion_ms"]
        self.assertAlmostEqual(result.mean * 1e3, times["mean"], delta=1e-9 * times["mean"])
        for field, q in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1)):
            self.assertAlmostEqual(result.quantile(q) * 1e3, times[field], delta=1e-9 * times[field])
        self.assertAlmostEqual(result.ideal * 1e3, said["ideal_ms"], delta=1e-6)
        self.assertEqual(result.link, said["link"])
        self.assertEqual(len(result.failures), said["writes_failed"])
        for name in COUNTS:
            self.assertEqual(int(getattr(result, name).sum()), said[name], name)
        if said["theory_ms"] is None:
            self.assertIsNone(result.theory)
            return
        assert result.theory is not None and result.floor is not None
        self.assertAlmostEqual(result.theory.mean * 1e3, said["theory_ms"]["mean"], delta=1e-6)
        self.assertAlmostEqual(result.theory.quantile(0.999) * 1e3, said["theory_ms"]["p999"], delta=1e-6)
        self.assertAlmostEqual(result.floor * 1e3, said["floor_ms"], delta=1e-6)

    def test_sim_gives_the_same_writes(self) -> None:
        path = sdr.Path(rtt="25ms", rate="10Gbit", loss=1e-2, burst=3)
        link = "rtt=25ms,rate=10Gbit,loss=1e-2,burst=3"
        for scheme in ("sr-rto", "sr-nack", "ec-xor", "ec-rs:16:4"):
            with self.subTest(scheme):
                said = command(
                    *("sim", "--link", link, "--size", "4MiB", "--scheme", scheme, "--runs", "40", "--seed", "9")
                )
                self.check_simulation(sdr.simulate(path, "4MiB", scheme, 40, seed=9), said)

    def test_sim_with_everything_a_link_does(self) -> None:
        path = sdr.Path(rtt="10ms", rate="1Gbit", loss=1e-3, packet=1024, chunk=4096)
        more = "reorder=1e-2,dup=1e-3,jitter=100us,queue=5ms,outage=3ms+2ms,losssize=2048"
        link = "rtt=10ms,rate=1Gbit,loss=1e-3," + more
        said = command(
            *("sim", "--link", link, "--size", "1MiB", "--scheme", "sr-nack"),
            *("--mtu", "1024", "--chunk", "4096", "--runs", "10", "--jobs", "2"),
        )
        self.check_simulation(sdr.simulate(path, "1MiB", "sr-nack", 10, link=more), said)

    def test_plan_gives_the_same_schemes_and_reason(self) -> None:
        cells = (("128MiB", 1e-3, 1), ("1MiB", 1e-2, 4), ("32GiB", 1e-5, 1))
        for size, loss, burst in cells:
            with self.subTest(size=size):
                said = command(
                    *("plan", "--rtt", "25ms", "--rate", "400Gbit", "--size", size),
                    *("--loss", str(loss), "--burst", str(burst), "--budget-overhead", "15%"),
                )
                plan = sdr.plan(sdr.Path("25ms", "400Gbit", loss, burst), size, budget="15%")
                self.assertEqual(plan.best.name, said["best"])
                self.assertEqual(plan.best.scheme, said["best_scheme"])
                self.assertEqual(len(plan), len(said["schemes"]))
                for planned, other in zip(plan, said["schemes"]):
                    for field in ("scheme", "name", "k", "m", "tuned", "within_budget", "at_floor"):
                        self.assertEqual(getattr(planned, field), other[field])
                    for field in ("mean", "p50", "p99", "p999"):
                        self.assertAlmostEqual(getattr(planned, field) * 1e3, other[field + "_ms"], delta=1e-6)
                    for field in ("overhead", "parity_overhead", "fallback", "holds_to_loss"):
                        self.assertEqual(getattr(planned, field), other[field])
                self.assertIn(plan.best.scheme, plan.reason)
                # The command has measured how fast parity is made; the rest of the sentence is the same.
                self.assertEqual(plan.reason.split(" more bytes")[0], said["why"].split(" more bytes")[0])

    def test_measured_encoding_counts_cores(self) -> None:
        plan = sdr.plan(sdr.Path("25ms", "400Gbit", 1e-3), "128MiB", measure_encoding=True)
        for planned in plan:
            if planned.parity_overhead == 0:
                self.assertEqual(planned.encode_cores, 0)
            elif planned.k is not None:  # a code for the whole message
                assert planned.encode_rate is not None and planned.encode_cores is not None
                np.testing.assert_allclose(planned.encode_cores * planned.encode_rate, 400e9)


if __name__ == "__main__":
    unittest.main()
