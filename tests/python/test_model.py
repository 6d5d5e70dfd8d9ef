"""The model from Python: against closed forms in NumPy, against itself sampled, in every shape."""

import dataclasses
import math
import pickle
import unittest

import numpy as np

import sdr

RTT = 25e-3
RATE = 400e9
MIB = 2**20


def paper(loss: float = 1e-3, **more: float) -> sdr.Path:
    return sdr.Path(rtt=RTT, rate=RATE, loss=loss, **more)


class Units(unittest.TestCase):
    def test_texts_and_numbers_say_the_same(self) -> None:
        self.assertEqual(sdr.Path("25ms", "400Gbit", "0.1%", packet="4KiB"), sdr.Path(0.025, 400e9, 1e-3))
        self.assertEqual(sdr.Transfer(paper(), "128MiB").size, 128 * MIB)
        self.assertEqual(sdr.size_bytes(1.6), 2)
        self.assertEqual(sdr.size_bytes("1MB"), 10**6)
        self.assertAlmostEqual(sdr.rtt_over_km(3750), RTT)

    def test_paths_and_schemes_are_values(self) -> None:
        path = paper()
        self.assertEqual(dataclasses.replace(path, loss=1e-2), paper(1e-2))
        self.assertEqual(pickle.loads(pickle.dumps(path)), path)
        self.assertEqual(pickle.loads(pickle.dumps(sdr.Scheme("ec-rs", m=4))), sdr.Scheme.parse("ec-rs:32:4"))
        self.assertEqual(str(sdr.Scheme("ec-xor")), "ec-xor:32:8")
        self.assertEqual(len({path, paper()}), 1)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            path.loss = 0.5  # type: ignore[misc]


class ClosedForms(unittest.TestCase):
    def test_selective_repeat_is_the_product_over_its_chunks(self) -> None:
        # P(max X_i <= q) = prod_i (1 - p^(floor((q - i T) / O) + 1)), section 4.2.1
        for name, rto in (("sr-rto", 3), ("sr-nack", 1)):
            for loss in (1e-4, 1e-2):
                transfer = sdr.Transfer(paper(loss), 4 * MIB)
                time = sdr.completion_time(transfer.path, transfer.size, name)
                i = np.arange(1, transfer.chunks + 1)
                period = rto * RTT + transfer.injection
                t = transfer.lossless + np.array([1e-6, 0.3, 0.99, 1.01, 2.5]) * period
                rest = (t[:, None] - RTT) - i * transfer.injection
                expected = np.prod(1 - loss ** (np.floor(rest / period) + 1), axis=1)
                np.testing.assert_allclose(time.cdf(t), expected, rtol=1e-9)

    def test_fallback_is_one_minus_the_chance_that_all_decode(self) -> None:
        loss, k, m = 1e-2, 32, 2
        chunks = 128 * MIB // 4096
        fails = sum(math.comb(k + m, i) * loss**i * (1 - loss) ** (k + m - i) for i in range(m + 1, k + m + 1))
        time = sdr.completion_time(paper(loss), 128 * MIB, f"ec-rs:{k}:{m}")
        self.assertAlmostEqual(time.fallback, 1 - (1 - fails) ** (chunks / k), delta=1e-9)
        group = k // m + 1
        decodes = ((1 - loss) ** group + group * loss * (1 - loss) ** (group - 1)) ** m
        time = sdr.completion_time(paper(loss), MIB, f"ec-xor:{k}:{m}")
        self.assertAlmostEqual(time.fallback, 1 - decodes ** (MIB / 4096 / k), delta=1e-9)

    def test_lossless_and_floor(self) -> None:
        transfer = sdr.Transfer(paper(1e-2), 128 * MIB)
        injection = 4096 * 8 / RATE
        self.assertEqual(transfer.chunks, 32768)
        self.assertAlmostEqual(transfer.lossless, 32768 * injection + RTT, delta=1e-9)
        self.assertAlmostEqual(transfer.floor, 32768 * injection / 0.99 + RTT, delta=1e-9)
        self.assertAlmostEqual(sdr.completion_time(paper(0), 128 * MIB, "sr-rto").mean, transfer.lossless, delta=1e-9)

    def test_chunk_loss_is_that_of_any_packet(self) -> None:
        self.assertAlmostEqual(sdr.Transfer(paper(1e-3, chunk=65536), MIB).chunk_loss, 1 - (1 - 1e-3) ** 16)

    def test_paper_mean_is_no_lower_than_the_mixture(self) -> None:
        paper_rs = sdr.Scheme("ec-rs", rto_rtts=3)
        exact = sdr.completion_time(paper(5e-2), "128MiB", paper_rs)
        self.assertGreater(sdr.paper_mean(paper(5e-2), "128MiB", paper_rs), exact.mean)
        self.assertAlmostEqual(exact.slowdown, 1.50, delta=0.01)  # docs/model.md


class Distribution(unittest.TestCase):
    def test_quantiles_and_cdf_keep_shapes(self) -> None:
        time = sdr.completion_time(paper(), "128MiB", "sr-nack")
        self.assertIsInstance(time.quantile(0.5), float)
        q = np.array([[0.1, 0.5], [0.9, 0.999]])
        self.assertEqual(np.shape(time.quantile(q)), (2, 2))
        np.testing.assert_array_equal(time.percentile(q * 100), time.quantile(q))
        self.assertTrue(np.all(np.asarray(time.cdf(time.quantile(q))) >= q))
        self.assertEqual(time.cdf(0), 0)
        self.assertEqual(time.cdf(math.inf), 1)
        self.assertEqual(np.shape(time.cdf(["30ms", "90ms"])), (2,))

    def test_samples_follow_the_theory(self) -> None:
        for scheme in ("sr-rto", "sr-nack", "ec-xor", "ec-rs"):
            time = sdr.completion_time(paper(1e-2), "16MiB", scheme)
            drawn = sdr.samples(paper(1e-2), "16MiB", scheme, 20_000, seed=5)
            self.assertAlmostEqual(drawn.mean() / time.mean, 1, delta=0.02, msg=scheme)

    def test_samples_do_not_depend_on_threads(self) -> None:
        one = sdr.samples(paper(), "128MiB", "ec-xor", 3000, seed=3, jobs=1)
        self.assertEqual((one.dtype, one.shape), (np.dtype(np.float64), (3000,)))
        np.testing.assert_array_equal(one, sdr.samples(paper(), "128MiB", "ec-xor", 3000, seed=3, jobs=5))
        self.assertFalse(np.array_equal(one, sdr.samples(paper(), "128MiB", "ec-xor", 3000, seed=4)))
        on_the_wire = sdr.samples(paper(), "128MiB", "ec-xor", 3000, seed=3, sender="serialised")
        self.assertFalse(np.array_equal(one, on_the_wire))


class Grid(unittest.TestCase):
    def test_arrays_broadcast_and_agree_with_single_answers(self) -> None:
        sizes = np.array([128 * 1024, MIB, 128 * MIB])
        losses = np.array([0, 1e-5, 1e-3, 1e-2])
        for scheme in ("sr-rto", "ec-rs:16:2"):
            mean = sdr.mean(sizes[:, None], losses, rtt=RTT, rate="400Gbit", scheme=scheme)
            tail = sdr.quantile(0.999, sizes[:, None], losses, rtt=RTT, rate=RATE, scheme=scheme)
            fallback = sdr.fallback(sizes[:, None], losses, rtt=RTT, rate=RATE, scheme=scheme)
            self.assertEqual(mean.shape, (3, 4))
            for (i, j), value in np.ndenumerate(mean):
                time = sdr.completion_time(paper(losses[j]), int(sizes[i]), scheme)
                self.assertEqual(value, time.mean)
                self.assertEqual(tail[i, j], time.quantile(0.999))
                self.assertEqual(fallback[i, j], time.fallback)
        np.testing.assert_allclose(
            sdr.slowdown(sizes, 1e-3, rtt=RTT, rate=RATE, scheme="sr-nack"),
            sdr.mean(sizes, 1e-3, rtt=RTT, rate=RATE, scheme="sr-nack") / sdr.lossless(sizes, rtt=RTT, rate=RATE),
        )

    def test_every_argument_broadcasts_texts_too(self) -> None:
        rtts = ["1ms", "25ms"]
        rates = np.array([1e9, 100e9, 400e9])[:, None]
        answer = sdr.floor("1MiB", "1%", rtt=rtts, rate=rates)
        self.assertEqual(answer.shape, (3, 2))
        self.assertAlmostEqual(answer[2, 1], sdr.Transfer(paper(1e-2), MIB).floor)
        self.assertIsInstance(sdr.mean(MIB, 1e-3, rtt=RTT, rate=RATE, scheme="sr-nack"), float)
        self.assertEqual(sdr.mean([], 1e-3, rtt=RTT, rate=RATE, scheme="sr-nack").shape, (0,))
        burst = sdr.mean(MIB, 1e-2, rtt=RTT, rate=RATE, scheme="ec-rs", burst=np.array([1, 8, 64]))
        self.assertTrue(np.all(np.diff(burst) > 0))

    def test_threads_do_not_matter(self) -> None:
        sizes, losses = 2.0 ** np.arange(17, 36)[:, None], np.logspace(-7, -1, 25)
        arguments = {"rtt": RTT, "rate": RATE, "scheme": "ec-xor"}
        one = sdr.mean(sizes, losses, jobs=1, **arguments)
        np.testing.assert_array_equal(one, sdr.mean(sizes, losses, jobs=7, **arguments))

    def test_the_first_element_out_of_range_is_named(self) -> None:
        losses = np.full((3, 50), 1e-3)
        losses[1, 7] = losses[2, 49] = 1.5
        for jobs in (1, 4):
            with self.assertRaisesRegex(ValueError, r"^loss 1\.5 is not from 0 to 0\.999 \(at index \[1, 7\]\)$"):
                sdr.mean(MIB, losses, rtt=RTT, rate=RATE, scheme="sr-rto", jobs=jobs)


class AllreduceOverDatacenters(unittest.TestCase):
    def test_bound_is_rounds_of_the_mean(self) -> None:
        for topology, rounds, share in (("ring", 6, 4), ("tree", 4, 1)):
            allreduce = sdr.Allreduce(paper(), "128MiB", "sr-rto", 4, topology, compute="1ms")
            mean = sdr.completion_time(paper(), 128 * MIB // share, "sr-rto").mean
            self.assertEqual(allreduce.rounds, rounds)
            self.assertAlmostEqual(allreduce.bound, rounds * (mean + 1e-3), delta=1e-8)
            times = allreduce.samples(4000, seed=2, jobs=1)
            np.testing.assert_array_equal(times, allreduce.samples(4000, seed=2, jobs=3))
            self.assertGreater(times.mean(), allreduce.bound * 0.99)


class Refusals(unittest.TestCase):
    def test_messages_name_the_field_the_value_and_the_range(self) -> None:
        path = paper()
        refused = [
            (r"loss 1\.5 is not from 0 to 0\.999", lambda: paper(1.5)),
            (r"loss nan is not a finite number", lambda: paper(math.nan)),
            (r'duration "25": a duration needs a unit', lambda: sdr.Path("25", RATE)),
            (r"rtt inf is not a finite number of seconds", lambda: sdr.Path(math.inf, RATE)),
            (r"rtt -1000000000 ns is not from 0", lambda: sdr.Path(-1, RATE)),
            (r'bandwidth "400GB": expected', lambda: sdr.Path(RTT, "400GB")),
            (r"rate 1\.0* ?bit/s|rate 1 bit/s", lambda: sdr.Path(RTT, 1)),
            (r"burst 0\.5 is not from 1 to 1e6", lambda: paper(burst=0.5)),
            (r"packet 8192 bytes is not from 1 byte to the chunk", lambda: paper(packet=8192, chunk=4096)),
            (r"size 0 bytes is not at least 1 byte", lambda: sdr.Transfer(path, 0)),
            (r"size -1 bytes is not from 0", lambda: sdr.Transfer(path, -1)),
            (r"k 0 is not from 1 to 254", lambda: sdr.Scheme("ec-rs", k=0)),
            (r"k \+ m = 250 \+ 8 is more than 255", lambda: sdr.Scheme("ec-rs", k=250)),
            (r"k 30 of ec-xor is not a multiple of m = 8", lambda: sdr.Scheme("ec-xor", k=30)),
            (r"scheme 'tcp' is not one of", lambda: sdr.completion_time(path, 1, "tcp")),
            (r"scheme 'sr-nack:3:2' is not one of", lambda: sdr.Scheme.parse("sr-nack:3:2")),
            (r"rto_rtts 3\.0 of sr-nack is not 1", lambda: sdr.Scheme("sr-nack", rto_rtts=3)),
            (r"percentile 1 is not between 0 and 1", lambda: sdr.completion_time(path, 1, "sr-rto").quantile(1)),
            (r"samples 0 is not from 1 to", lambda: sdr.samples(path, 1, "sr-rto", 0)),
            (r"jobs 0 is not from 1 to 1024", lambda: sdr.samples(path, 1, "sr-rto", 1, jobs=0)),
            (r"sender 'wire' is not one of", lambda: sdr.samples(path, 1, "sr-rto", 1, sender="wire")),
            (r"datacenters 1 is not from 2 to 4096", lambda: sdr.Allreduce(path, 1, "sr-rto", 1)),
            (r"topology 'star' is not one of", lambda: sdr.Allreduce(path, 1, "sr-rto", 4, "star")),
            (r"budget 200 % is not from 0 to 100 %", lambda: sdr.plan(path, 1, budget=2)),
            (r'budget "ten" is not a number', lambda: sdr.plan(path, 1, budget="ten")),
            (r"distance -1 km is not from 0", lambda: sdr.rtt_over_km(-1)),
        ]
        for message, ask in refused:
            with self.subTest(message):
                self.assertRaisesRegex(ValueError, message, ask)
        self.assertRaises(TypeError, sdr.Transfer, path, None)
        self.assertRaises(TypeError, sdr.samples, path, 1, "sr-rto", 1.5)


if __name__ == "__main__":
    unittest.main()
