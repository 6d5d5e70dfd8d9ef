// Ten thousand transfers over paths drawn at random: each arrives exactly, and in a time that its path explains.
//
// Every case is a connection of its own with parameters from one seed; a failure names the case's seed, with which it
// runs alone (SDR_TEST_SEED). SDR_TEST_TRANSFERS sets how many transfers there are in all.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

constexpr int kShares = 4;  // tests a scheme, which may run side by side
constexpr int kTransfersACase = 20;

int transfers_in_all() {
  const char* text = std::getenv("SDR_TEST_TRANSFERS");
  return text != nullptr ? std::atoi(text) : kSanitized ? 1'000 : 10'000;
}

struct Case {
  ConnectionOptions options;
  transport::SimulatedOptions network;
  std::vector<Message> messages;
  std::size_t in_flight = 1;
  std::uint64_t largest_transfer = 0;
  double chunk_loss = 0;
  Duration packet_time{0};
  Duration limit{0};
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  Case draw(Scheme scheme, std::uint64_t seed) {
    Case drawn;
    draw_options(drawn, scheme);
    draw_path(drawn, seed);
    draw_messages(drawn);
    drawn.limit = bound(drawn);
    return drawn;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  double uniform() { return std::uniform_real_distribution<double>()(random_); }
  double between(double low, double high) { return low * std::pow(high / low, uniform()); }  // even in the logarithm
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(choices.size()));
  }

  void draw_options(Case& drawn, Scheme scheme) {
    ConnectionOptions& options = drawn.options;
    options.scheme = scheme;
    options.data_chunks = one_of({1, 2, 4, 8, 32});
    options.parity_chunks = static_cast<int>(1 + below(static_cast<std::uint64_t>(std::min(options.data_chunks, 8))));
    options.peer_timeout = std::chrono::hours(1);
    QueuePairOptions& qp = options.queue_pair;
    qp.mtu = {one_of({64U, 256U, 1456U, 1456U, 4096U})};
    qp.packets_per_chunk = one_of({1U, 1U, 2U, 4U, 16U});
    qp.slots = one_of({4U, 8U, 64U});
    qp.channels = static_cast<std::uint8_t>(1 + below(3));
    const std::uint64_t chunk = qp.mtu.count * qp.packets_per_chunk;
    qp.max_message = {chunk * (static_cast<std::uint64_t>(options.parity_chunks) + below(64))};
    const auto m = static_cast<std::uint64_t>(options.parity_chunks);
    const auto k = static_cast<std::uint64_t>(options.data_chunks);
    const std::uint64_t chunks = qp.max_message.count / chunk;
    const bool coded = scheme == Scheme::EcXor || scheme == Scheme::EcRs;
    drawn.largest_transfer = chunk * (coded ? std::min(chunks, chunks / m * k) : chunks);
    drawn.in_flight = one_of({1UL, 2UL, 8UL, 64UL});
  }

  void draw_path(Case& drawn, std::uint64_t seed) {
    simulation::LinkSpec& link = drawn.network.link;
    link.rate = {between(1e6, 4e11)};
    link.rtt = Duration(static_cast<std::int64_t>(uniform() < 0.3 ? uniform() * 2e6 : uniform() * 2e8));
    link.loss = uniform() < 0.2 ? 0 : between(1e-4, 0.1);
    link.burst = uniform() < 0.5 ? 1 : between(1, 64);
    link.reorder = uniform() < 0.5 ? 0 : between(1e-3, 0.2);
    link.duplicate = uniform() < 0.5 ? 0 : between(1e-3, 0.2);
    link.jitter = Duration(uniform() < 0.5 ? 0 : static_cast<std::int64_t>(uniform() * 5e6));
    link.seed = seed;
    drawn.packet_time = link.rate.time_for({drawn.options.queue_pair.mtu.count + 44});
    link.queue = std::chrono::milliseconds(3 + below(20)) + 20 * drawn.packet_time;
    drawn.options.queue_pair.rate = link.rate;
    // A slot comes to its next generation in a round trip at least; what may fall behind later packets for longer than
    // the generations last is not told apart (sdr/queue_pair.hpp).
    const Duration round_trip = link.rtt + 2 * drawn.packet_time;
    const auto late = static_cast<std::uint64_t>(link.reorder_window() / std::max(round_trip, Duration(1)));
    drawn.options.queue_pair.generations = static_cast<std::uint8_t>(std::min<std::uint64_t>(255, 3 + late + below(5)));
    drawn.chunk_loss = 1 - std::pow(1 - link.loss, drawn.options.queue_pair.packets_per_chunk);
  }

  // Small ones most of the time; up to about three hundred packets.
  void draw_messages(Case& drawn) {
    const double top = std::min(3.5 * static_cast<double>(drawn.largest_transfer),
                                300 * static_cast<double>(drawn.options.queue_pair.mtu.count));
    for (int i = 0; i < kTransfersACase; ++i) {
      Message message;
      message.size = uniform() < 0.05 ? 0 : static_cast<std::uint64_t>(between(1, top));
      message.capacity = message.size + (uniform() < 0.7 ? 0 : below(1 + static_cast<std::uint64_t>(top)));
      if (uniform() < 0.5) message.immediate = static_cast<std::uint32_t>(random_());
      message.source = below(64);
      message.shift = below(64);
      drawn.messages.push_back(message);
    }
  }

  // Each transfer takes its injection, then rounds of repair until the last of its chunks is there: their number is
  // geometric in the loss. What is in excess of that several times over has stalled.
  static Duration bound(const Case& drawn) {
    const simulation::LinkSpec& link = drawn.network.link;
    const double share = 1 + static_cast<double>(drawn.options.parity_chunks) / drawn.options.data_chunks;
    std::uint64_t bytes = 0;
    std::uint64_t transfers = 0;
    for (const Message& message : drawn.messages) {
      bytes += message.size + drawn.options.queue_pair.mtu.count * drawn.options.queue_pair.packets_per_chunk;
      transfers += 1 + message.capacity / drawn.largest_transfer;
    }
    const Duration injection =
        link.rate.time_for({static_cast<std::uint64_t>(static_cast<double>(bytes) * share * 1.7)});
    const double path =
        static_cast<double>((link.rtt + link.jitter + link.queue + 2 * link.reorder_window()).count()) + 4e6;
    const double lost = std::clamp(1 - (1 - drawn.chunk_loss) * (1 - link.loss), 0.02, 0.95);
    const double rounds = 6 + std::log(1e4) / -std::log(lost);
    return 4 * injection + Duration(static_cast<std::int64_t>(static_cast<double>(transfers) * rounds * 4 * path)) +
           std::chrono::seconds(5) +
           std::chrono::seconds(static_cast<int>(4 * link.burst));  // a burst met by pings alone
  }

  std::mt19937_64 random_;
};

void run_case(Scheme scheme, std::uint64_t seed) {
  SCOPED_TRACE(seed_trace(seed) + " " + std::string(to_string(scheme)));
  const Case drawn = Draw(seed).draw(scheme, seed);
  SCOPED_TRACE(simulation::to_string(drawn.network.link) + " mtu " + to_string(drawn.options.queue_pair.mtu) +
               " chunk " + std::to_string(drawn.options.queue_pair.packets_per_chunk) + " slots " +
               std::to_string(drawn.options.queue_pair.slots) + " code " + std::to_string(drawn.options.data_chunks) +
               ":" + std::to_string(drawn.options.parity_chunks) + " in flight " + std::to_string(drawn.in_flight));
  ConnectionPair pair(drawn.network, drawn.options);
  pair.set_step(std::max({Duration(1000), drawn.packet_time, drawn.network.link.rtt / 256}));
  Traffic traffic(pair, (seed & 1) != 0 ? Site::A : Site::B, drawn.messages, drawn.in_flight, drawn.in_flight);
  const bool done = pair.run_until([&] { return traffic.step(); }, drawn.limit);
  EXPECT_EQ(traffic.problem(), "");
  EXPECT_TRUE(done) << "stalled: " << traffic.progress() << " after " << to_string(drawn.limit);
}

class RandomTransfers : public ::testing::TestWithParam<std::tuple<Scheme, int>> {};

TEST_P(RandomTransfers, ArriveExactWithoutStall) {
  const auto [scheme, share] = GetParam();
  if (std::getenv("SDR_TEST_SEED") != nullptr) return run_case(scheme, test_seed(0));
  const int cases = std::max(1, transfers_in_all() / kTransfersACase / static_cast<int>(kAllSchemes.size()) / kShares);
  for (int i = 0; i < cases && !HasFailure(); ++i)
    run_case(scheme, static_cast<std::uint64_t>(scheme) * 1'000'000 + static_cast<std::uint64_t>(share) * 100'000 +
                         static_cast<std::uint64_t>(i));
}

INSTANTIATE_TEST_SUITE_P(Shares, RandomTransfers,
                         ::testing::Combine(::testing::ValuesIn(kAllSchemes), ::testing::Range(0, kShares)),
                         [](const auto& test) {
                           return identifier(std::get<0>(test.param)) + "_" + std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace sdr::testing
