// Parity over repairs: what it restores, byte for byte, and that contradictions are refused.
#include "reliability/repair_code.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/reliability/pair.hpp"
#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

using reliability::ArrivalTracker;
using reliability::CodingLayout;
using reliability::RepairBlock;
using reliability::RepairEncoder;
using reliability::RepairProgress;
using reliability::ShardMap;

constexpr std::uint32_t kChunkBytes = 200;
constexpr std::uint32_t kChunks = 500;
constexpr std::uint64_t kLength = (kChunks - 1) * std::uint64_t{kChunkBytes} + 70;  // the last one is short

// A transfer of which some chunks were sent again, at both ends.
class Repairs : public ::testing::Test {
 protected:
  Repairs() : sent_(random_bytes(kLength, 7)), landed_(kLength), bits_(kChunks / 64 + 1), parity_bits_(16) {
    held_.begin(kChunks);
    map_ = {CodingLayout::uncoded(kChunks), kLength, kChunkBytes, true};
    parity_.resize(std::size_t{64} * 16 * kChunkBytes);
  }

  RepairEncoder& encode(const RepairBlock& block, const std::vector<std::uint32_t>& chunks) {
    code_ = coding::ErasureCode::create({coding::CodeKind::ReedSolomon, block.data_each, block.parity_each}).value();
    encoder_ = std::make_unique<RepairEncoder>(block, *code_, chunks, map_, sent_, executor_);
    return *encoder_;
  }
  Result<void> name(std::uint32_t g) {
    return progress_.add(encoder_->block(), g, encoder_->group(g), *code_, held_, restored_);
  }
  void land(std::uint32_t chunk) {
    const std::size_t from = std::size_t{chunk} * kChunkBytes;
    const std::size_t bytes = std::min<std::size_t>(kChunkBytes, kLength - from);
    std::copy_n(sent_.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                landed_.begin() + static_cast<std::ptrdiff_t>(from));
    bits_[chunk / 64].fetch_or(std::uint64_t{1} << (chunk % 64));
    held_.poll(bits_, [this](std::uint32_t c) { progress_.data_arrived(c, restored_); });
  }
  void land_parity(std::uint32_t q) {
    const std::uint32_t at = encoder_->block().parity_first + q;
    std::copy_n(encoder_->chunk(q), kChunkBytes, parity_.data() + std::size_t{at} * kChunkBytes);
    parity_bits_[at / 64].fetch_or(std::uint64_t{1} << (at % 64));
    progress_.poll(parity_bits_, restored_);
  }

  InlineExecutor executor_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> landed_;
  std::vector<std::byte> parity_;
  std::vector<std::atomic<std::uint64_t>> bits_;
  std::vector<std::atomic<std::uint64_t>> parity_bits_;
  ArrivalTracker held_;
  ShardMap map_;
  std::optional<coding::ErasureCode> code_;
  std::unique_ptr<RepairEncoder> encoder_;
  RepairProgress progress_;
  std::multiset<std::uint32_t> restorable_;  // as it was told
  RepairProgress::OnChunk restored_ = [this](std::uint32_t chunk) { restorable_.insert(chunk); };
};

TEST_F(Repairs, OfAGroup_AreRestoredOnceItsParityMakesUpForThem_InAnyOrder) {
  const std::uint64_t seed = test_seed(11);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  // Every fifth chunk was sent again, the last one too; the others are here.
  std::vector<std::uint32_t> chunks;
  for (std::uint32_t chunk = 4; chunk < kChunks; chunk += 5) chunks.push_back(chunk);
  const RepairBlock block{.parity_first = 64, .groups = 4, .data_each = 25, .parity_each = 6};
  encode(block, chunks);
  // Of each group as many repairs are lost as parity comes.
  std::set<std::uint32_t> lost;
  enum class What { Data, Parity, Name };
  std::vector<std::pair<What, std::uint32_t>> events;
  for (std::uint32_t g = 0; g < block.groups; ++g) {
    std::vector<std::uint32_t> group = encoder_->group(g);
    std::shuffle(group.begin(), group.end(), random);
    for (std::uint32_t i = 0; i < 3; ++i) {
      lost.insert(group[i]);
      events.emplace_back(What::Parity, g + block.groups * static_cast<std::uint32_t>(random() % 2 + 2 * i));
    }
    events.emplace_back(What::Name, g);
  }
  for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk)
    if (!lost.contains(chunk)) events.emplace_back(What::Data, chunk);
  std::shuffle(events.begin(), events.end(), random);
  for (const auto& [what, number] : events) {
    EXPECT_LE(restorable_.size(), lost.size());
    if (what == What::Data) land(number);
    if (what == What::Parity) land_parity(number);
    if (what == What::Name) {
      EXPECT_TRUE(name(number).ok());
    }
  }
  for (const std::uint32_t chunk : lost) EXPECT_EQ(restorable_.count(chunk), 1U) << chunk;
  for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk)
    EXPECT_EQ(progress_.restores(chunk), lost.contains(chunk)) << chunk;
  EXPECT_EQ(progress_.decode(map_, landed_, parity_), lost.size());
  EXPECT_EQ(landed_, sent_);
}

TEST_F(Repairs, MoreThanTheParityOfTheirGroup_AreNotPromised) {
  const RepairBlock block{.parity_first = 0, .groups = 1, .data_each = 4, .parity_each = 2};
  encode(block, {10, 20, 30, 40});
  ASSERT_TRUE(name(0).ok());
  land(10);
  land_parity(0);
  land_parity(1);
  EXPECT_TRUE(restorable_.empty());
  EXPECT_FALSE(progress_.restores(20));
  land(40);
  EXPECT_THAT(restorable_, ::testing::UnorderedElementsAre(20, 30));
  land(20);  // it came after all
  EXPECT_FALSE(progress_.restores(20));
  EXPECT_EQ(progress_.decode(map_, landed_, parity_), 1U);
}

TEST_F(Repairs, GroupThatIsNamedAgain_ChangesNothing_AndOtherwiseIsRefused) {
  const RepairBlock block{.parity_first = 0, .groups = 2, .data_each = 2, .parity_each = 2};
  encode(block, {10, 20, 30, 40});
  ASSERT_TRUE(name(0).ok());
  EXPECT_TRUE(progress_.knows(block, 0));
  EXPECT_FALSE(progress_.knows(block, 1));
  EXPECT_TRUE(name(0).ok());
  EXPECT_EQ(progress_.add(block, 0, {10, 31}, *code_, held_, restored_).error().code, ErrorCode::Protocol);
  EXPECT_EQ(progress_.add(block, 1, {30, 40}, *code_, held_, restored_).error().code, ErrorCode::Protocol)
      << "30 is in group 0";
  const RepairBlock over{.parity_first = 0, .groups = 3, .data_each = 2, .parity_each = 2};
  EXPECT_EQ(progress_.add(over, 1, {50}, *code_, held_, restored_).error().code, ErrorCode::Protocol)
      << "its parity lies there";
  const RepairBlock behind{.parity_first = 64, .groups = 1, .data_each = 2, .parity_each = 2};
  EXPECT_TRUE(progress_.add(behind, 0, {50}, *code_, held_, restored_).ok());
}

// Ends that believe in a loss, over a path of 10 Gbit/s that loses one packet in twenty: fast enough that a round trip
// has hundreds of repairs. The real protocol, every byte looked at.
class LossyPair {
 public:
  LossyPair(const std::string& rtt, double believed, std::uint64_t seed, Bytes max_message)
      : pair_(network(rtt, seed), options(believed, max_message)) {
    pair_.set_step(std::chrono::microseconds(20));
  }
  ConnectionPair* operator->() { return &pair_; }
  ConnectionPair& operator*() { return pair_; }

 private:
  static transport::SimulatedOptions network(const std::string& rtt, std::uint64_t seed) {
    transport::SimulatedOptions network;
    network.link = simulation::LinkSpec::parse("rtt=" + rtt + ",rate=10Gbit,loss=0.05,queue=50ms").value();
    network.link.seed = seed;
    return network;
  }
  static ConnectionOptions options(double believed, Bytes max_message) {
    ConnectionOptions options;
    options.scheme = Scheme::Adaptive;
    options.queue_pair.mtu = {1024};
    options.queue_pair.rate = {9e9};
    options.queue_pair.max_message = max_message;
    options.posted_ahead = 64_MiB;
    options.link = std::make_shared<LinkEstimator>();
    options.link->restore(believed, 1);
    return options;
  }
  ConnectionPair pair_;
};

TEST(RepairCode, OfLongWritesOverALossyPath_RestoresEveryByteInOneRound) {
  const std::uint64_t seed = test_seed(5);
  SCOPED_TRACE(seed_trace(seed));
  LossyPair pair("4ms", 0.05, seed, 4_MiB);
  constexpr std::uint64_t kSize = 17'000'001;
  Traffic traffic(*pair, Site::A, {{.size = kSize, .capacity = kSize}, {.size = kSize, .capacity = kSize}}, 1, 2);
  ASSERT_TRUE(pair->run_until([&] { return traffic.step(); }, std::chrono::seconds(20))) << traffic.progress();
  EXPECT_EQ(traffic.problem(), "");
  const ConnectionStatistics sent = pair->a().statistics();
  EXPECT_LT(sent.chunks_retransmitted, sent.chunks_sent / 10) << "repairs, but hardly any copies of them";
  EXPECT_GT(pair->b().statistics().chunks_recovered, 0U);
}

// The sender believes in hardly any loss: the tail's parity does not do, and hundreds of its chunks go again.
TEST(RepairCode, OfATailWhoseLossWasUnderestimated_MakesOneRoundMoreEnough) {
  const std::uint64_t seed = test_seed(6);
  SCOPED_TRACE(seed_trace(seed));
  LossyPair pair("20ms", 1e-5, seed, QueuePairOptions().max_message);
  constexpr std::uint64_t kSize = 8'000'001;
  ASSERT_TRUE(pair->run_until([&] { return pair->a().ready() && pair->b().ready(); }, std::chrono::seconds(5)));
  Traffic traffic(*pair, Site::A, {{.size = kSize, .capacity = kSize}}, 1, 1);
  const TimePoint begin = pair->now();
  ASSERT_TRUE(pair->run_until([&] { return traffic.step(); }, std::chrono::seconds(20))) << traffic.progress();
  EXPECT_EQ(traffic.problem(), "");
  // Injection takes 7.4 ms; a CTS and two rounds are three round trips.
  EXPECT_LT(pair->now() - begin, std::chrono::milliseconds(80)) << "not a third round";
  const ConnectionStatistics sent = pair->a().statistics();
  EXPECT_LT(sent.chunks_retransmitted, sent.chunks_sent / 10) << "not copies of each of them";
}

}  // namespace
}  // namespace sdr::testing
