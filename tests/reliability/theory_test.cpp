// The completion-time theory against the stack: the mean of many Writes over a long lossy link in virtual time.
//
// X_i = i T + O (Y_i - 1) with O = RTO + T and Y_i geometric; a Write takes E[max X_i] + RTT (paper section 4.2). A
// chunk is one packet here, and T the time of a packet on the wire, headers included.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kRate = 1e9;
constexpr double kRtt = 25e-3;
constexpr std::uint32_t kMtu = 1456;
constexpr double kPacketTime = (kMtu + 44) * 8 / kRate;

struct Point {
  const char* name;
  std::uint64_t bytes;
  double loss;
  int runs;

  friend std::ostream& operator<<(std::ostream& out, const Point& point) { return out << point.name; }
};
constexpr Point kPoints[] = {
    {"4MiB_1e3", 4 << 20, 1e-3, 400}, {"1MiB_1e2", 1 << 20, 1e-2, 600}, {"16MiB_1e4", 16 << 20, 1e-4, 100}};

double chunks_of(const Point& point) {
  return std::ceil(static_cast<double>(point.bytes) / kMtu);
}
double ideal(const Point& point) {
  return chunks_of(point) * kPacketTime + kRtt;
}

// The integral over q of 1 - prod_i (1 - P(X_i >= q)); up to M T the last chunk alone makes it 1.
double expected_time(const Point& point, double rto) {
  const double m = chunks_of(point);
  const double t = kPacketTime;
  const double period = rto + t;
  const auto nobody_later = [&](double q) {
    double product = 1;
    // Chunks with ceil((q - i T) / O) = j have i T in [q - j O, q - (j - 1) O).
    for (double j = 1;; ++j) {
      const double high = std::min(m, std::ceil((q - (j - 1) * period) / t) - 1);
      const double low = std::max(1.0, std::ceil((q - j * period) / t));
      if (high >= low) product *= std::pow(1 - std::pow(point.loss, j), high - low + 1);
      if (low <= 1) return product;
    }
  };
  double mean = m * t;
  const double step = 20e-6;
  for (double q = m * t + step / 2;; q += step) {
    const double later = 1 - nobody_later(q);
    mean += later * step;
    if (later < 1e-9) return mean + kRtt;
  }
}

double measured_mean(Scheme scheme, const Point& point) {
  transport::SimulatedOptions network;
  network.link = simulation::LinkSpec::parse("rtt=25ms,rate=1Gbit,queue=50ms,seed=42").value();
  network.link.loss = point.loss;
  network.carry_payload = false;
  ConnectionOptions options;
  options.scheme = scheme;
  options.queue_pair.mtu = {kMtu};
  options.queue_pair.rate = {kRate};
  ConnectionPair pair(network, options);
  pair.set_step(std::chrono::microseconds(20));
  if (!pair.get_ready()) return 0;
  const std::vector<std::byte> data(point.bytes);
  std::vector<std::byte> buffer(point.bytes);
  double sum = 0;
  const int runs = kSanitized ? 10 : point.runs;
  for (int run = 0; run < runs; ++run) {
    EXPECT_TRUE(pair.b().post_receive(buffer));
    pair.run_for(milliseconds(60));  // its CTS is known, all that is late has come
    const TimePoint begin = pair.now();
    EXPECT_TRUE(pair.a().post_write(data));
    Connection& a = pair.a();
    Connection& b = pair.b();
    std::optional<WriteCompletion> done;
    if (!pair.run_until(
            [&] {
              b.poll_receive();
              return (done = a.poll_write()).has_value();
            },
            seconds(30)))
      return 0;
    sum += std::chrono::duration<double>(done->at - begin).count();
  }
  return sum / runs;
}

class Theory : public ::testing::TestWithParam<Point> {};

TEST_P(Theory, SelectiveRepeat_TakesWhatTheModelSays) {
  const double rto = measured_mean(Scheme::SrRto, GetParam());
  const double nack = measured_mean(Scheme::SrNack, GetParam());
  const double rto_expected = expected_time(GetParam(), 3 * kRtt);
  const double nack_expected = expected_time(GetParam(), kRtt);
  std::printf("sr-rto %.1f ms, theory %.1f ms; sr-nack %.1f ms, theory %.1f ms\n", rto * 1e3, rto_expected * 1e3,
              nack * 1e3, nack_expected * 1e3);
  EXPECT_LT(nack, rto);
  if (kSanitized) return;  // too few runs for a mean
  EXPECT_NEAR(rto, rto_expected, 0.1 * rto_expected);
  EXPECT_NEAR(nack, nack_expected, 0.1 * nack_expected);
}

TEST_P(Theory, ReedSolomon_StaysNearTheIdeal) {
  const double mean = measured_mean(Scheme::EcRs, GetParam());
  std::printf("ec-rs %.1f ms, ideal %.1f ms, slowdown %.3f\n", mean * 1e3, ideal(GetParam()) * 1e3,
              mean / ideal(GetParam()));
  EXPECT_GT(mean, ideal(GetParam()));
  // Parity is a quarter more to send; the rest is waiting for what is in flight.
  const double parity = 0.25 * chunks_of(GetParam()) * kPacketTime;
  EXPECT_LE(mean, 1.05 * (ideal(GetParam()) + parity));
  if (GetParam().bytes == 4 << 20) {
    EXPECT_LE(mean, 1.20 * ideal(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Points, Theory, ::testing::ValuesIn(kPoints),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sdr::testing
