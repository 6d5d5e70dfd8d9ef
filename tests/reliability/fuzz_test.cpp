// Hostile and broken control datagrams: no crash, no byte outside the buffers, no operation without an end.
//
// A datagram that carries the connection's token is taken for the peer's. What contradicts what this end knows fails
// the connection with a Protocol error; what is cut short or makes no sense is dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "reliability/control_message.hpp"
#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kRounds = kSanitized ? 20'000 : 100'000;

void read_all(std::span<const std::byte> datagram) {
  auto message = reliability::parse(datagram);
  if (!message) return;
  if (auto* offers = std::get_if<reliability::OffersReader>(&*message))
    while (offers->next()) {
    }
  if (auto* reports = std::get_if<reliability::ReportsReader>(&*message)) {
    reliability::Report report;
    while (reports->next(report)) {
      ASSERT_LE(report.base, report.from);
      std::uint64_t at = report.from;
      for (const reliability::ChunkRange& range : report.missing) {
        ASSERT_GE(range.first, at);
        ASSERT_GT(range.count, 0U);
        at = std::uint64_t{range.first} + range.count;
        ASSERT_LE(at, report.horizon);
      }
    }
  }
  if (auto* groups = std::get_if<reliability::RepairGroupsReader>(&*message)) {
    reliability::RepairGroup group;
    while (groups->next(group)) {
      ASSERT_LT(group.group, groups->header.block.groups);
      ASSERT_FALSE(group.chunks.empty());
      ASSERT_LE(group.chunks.size(), groups->header.block.data_each);
      ASSERT_TRUE(std::is_sorted(group.chunks.begin(), group.chunks.end(), std::less_equal<>())) << "none twice";
    }
  }
}

std::vector<std::byte> some_bytes(std::mt19937_64& random, std::size_t most) {
  std::vector<std::byte> bytes = random_bytes(random() % (most + 1), random());
  if (bytes.size() >= 2 && random() % 4 != 0) {  // past the header
    bytes[0] = static_cast<std::byte>(1 + random() % 5);
    bytes[1] = static_cast<std::byte>(reliability::kReliabilityVersion);
  }
  return bytes;
}

void mutate(std::vector<std::byte>& bytes, std::mt19937_64& random) {
  if (bytes.empty()) return;
  for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
    std::byte& at = bytes[random() % bytes.size()];
    at = random() % 2 == 0 ? at ^ static_cast<std::byte>(1U << (random() % 8)) : static_cast<std::byte>(random());
  }
  if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
}

TEST(Fuzz, RandomDatagrams_AreParsedWithoutHarm) {
  const std::uint64_t seed = test_seed(1);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < kRounds; ++i) read_all(some_bytes(random, 300));
}

TEST(Fuzz, MutatedDatagrams_AreParsedWithoutHarm) {
  const std::uint64_t seed = test_seed(2);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < kRounds; ++i) {
    std::vector<std::byte> bytes(400);
    ByteWriter writer(bytes);
    const std::uint64_t kind = random() % 3;
    if (kind == 0) {
      write(writer, reliability::RepairGroupsHeader{
                        random() % 100, {.parity_first = 64, .groups = 3, .data_each = 9, .parity_each = 4}});
      for (std::uint32_t n = 0; n < 3; ++n)
        reliability::append(writer, n, std::vector<std::uint32_t>{n, 90 + n, 1000 + n, 70'000});
    } else if (kind == 1) {
      write(writer, reliability::OffersHeader{random(), random() % 100, random(), random() % 2 == 0});
      for (int n = 0; n < 3; ++n) append(writer, reliability::Offer{random() % 100, 1, random() % 10000, 0, 7, true});
    } else {
      write(writer, reliability::ReportsHeader{random(), random(), 5, 3, 100, random(), random()});
      reliability::Report report{.transfer = 5, .base = 10, .from = 10, .horizon = 1000};
      for (std::uint32_t at = 20; at < 900; at += 1 + static_cast<std::uint32_t>(random() % 100) + 5)
        report.missing.push_back({at, 1 + static_cast<std::uint32_t>(random() % 5)});
      append(writer, report);
    }
    bytes.resize(writer.size());
    mutate(bytes, random);
    read_all(bytes);
  }
}

class LiveFuzz : public ::testing::TestWithParam<std::tuple<Scheme, int>> {
 protected:
  enum class Attack { Random, Truncated, Mutated };

  static ConnectionOptions options(Scheme scheme) {
    ConnectionOptions options;
    options.scheme = scheme;
    options.data_chunks = 8;
    options.parity_chunks = 2;
    options.queue_pair.mtu = {256};
    options.queue_pair.slots = 8;
    options.queue_pair.max_message = 8_KiB;
    options.queue_pair.rate = {1e8};
    options.peer_timeout = seconds(2);
    return options;
  }

  // Writes both ways while one datagram a round trip and end is followed by a broken copy of it, or by noise.
  void attack(Attack how, std::uint64_t seed, bool& failed) {
    SCOPED_TRACE(seed_trace(seed));
    transport::SimulatedOptions network;
    network.link = simulation::LinkSpec::parse("rtt=2ms,rate=100Mbit,loss=0.02,queue=50ms").value();
    network.link.seed = seed;
    ConnectionPair pair(network, options(std::get<0>(GetParam())));
    pair.set_step(microseconds(50));
    std::mt19937_64 random(seed);
    for (const Site from : {Site::A, Site::B})
      pair.network().set_filter(from, [&, from](const PacketView& view) {
        if (view.kind != PacketView::Kind::Control || random() % 8 != 0) return Verdict::Pass;
        std::vector<std::byte> bytes(view.bytes.begin(), view.bytes.end());
        if (how == Attack::Truncated) bytes.resize(random() % bytes.size());
        if (how == Attack::Mutated) mutate(bytes, random);
        if (how == Attack::Random) {
          const auto noise = some_bytes(random, 200);
          bytes.resize(std::min<std::size_t>(bytes.size(), 2));  // the layer below lets it through
          if (random() % 2 == 0)
            bytes.insert(bytes.end(), noise.begin(), noise.end());
          else
            bytes = noise;
        }
        pair.network()
            .endpoint(other(from))
            ->inject_control(bytes, ConnectionPair::token(other(from)), view.now + milliseconds(1));
        return Verdict::Pass;
      });
    std::vector<Message> messages;
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t capacity = random() % 30'000;
      messages.push_back({.size = random() % (capacity + 1), .capacity = capacity});
    }
    Traffic there(pair, Site::A, messages);
    Traffic back(pair, Site::B, messages);
    const Connection& a = pair.a();
    const Connection& b = pair.b();
    const bool ended = pair.run_until(
        [&] {
          const bool there_done = there.step();
          return (back.step() && there_done) || (a.failure() && b.failure());
        },
        seconds(40));
    failed = a.failure() || b.failure() || !there.problem().empty() || !back.problem().empty();
    for (const Connection* end : {&a, &b})
      if (end->failure()) {
        EXPECT_TRUE(end->failure()->code == ErrorCode::Protocol || end->failure()->code == ErrorCode::PeerUnreachable)
            << end->failure()->message;
      }
    if (how == Attack::Mutated) {
      // A forged word that contradicts nothing is believed: a wrong length, say. Outside of the buffers nothing
      // happens.
      for (const std::string& problem : {there.problem(), back.problem()})
        EXPECT_EQ(problem.find("before the buffer"), std::string::npos) << problem;
    } else {
      EXPECT_TRUE(ended) << there.progress() << "; " << back.progress();
      for (const std::string& problem : {there.problem(), back.problem()}) {
        EXPECT_EQ(problem.find("wrong"), std::string::npos) << problem;
        EXPECT_EQ(problem.find("touched"), std::string::npos) << problem;
      }
    }
  }
  int cases() const { return kSanitized ? 5 : 25; }
  std::uint64_t first_seed() const { return test_seed(static_cast<std::uint64_t>(std::get<1>(GetParam())) * 1000); }
};

TEST_P(LiveFuzz, TruncatedDatagrams_ChangeNothing) {
  for (int i = 0; i < cases() && !HasFailure(); ++i) {
    bool failed = false;
    attack(Attack::Truncated, first_seed() + static_cast<std::uint64_t>(i), failed);
    EXPECT_FALSE(failed);
  }
}

TEST_P(LiveFuzz, RandomDatagrams_NeverCompleteAnything) {
  for (int i = 0; i < cases() && !HasFailure(); ++i) {
    bool failed = false;
    attack(Attack::Random, first_seed() + 100 + static_cast<std::uint64_t>(i), failed);
  }
}

TEST_P(LiveFuzz, MutatedDatagrams_DoNoHarmOutsideTheBuffers) {
  for (int i = 0; i < cases() && !HasFailure(); ++i) {
    bool failed = false;
    attack(Attack::Mutated, first_seed() + 200 + static_cast<std::uint64_t>(i), failed);
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, LiveFuzz,
                         ::testing::Combine(::testing::ValuesIn(kAllSchemes), ::testing::Range(0, 2)),
                         [](const auto& test) {
                           return identifier(std::get<0>(test.param)) + "_" + std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace sdr::testing
