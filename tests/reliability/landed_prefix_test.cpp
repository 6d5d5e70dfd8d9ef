// The front of a receive can be read before the Write that fills it is complete.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/reliability/pair.hpp"

namespace sdr::testing {
namespace {

using std::chrono::seconds;

class LandedPrefix : public ::testing::TestWithParam<Scheme> {};

TEST_P(LandedPrefix, OnlyGrows_HoldsTheBytesOfTheWrite_AndIsAheadOfTheCompletion) {
  const std::uint64_t seed = test_seed(51);
  SCOPED_TRACE(seed_trace(seed));
  transport::SimulatedOptions network;
  network.link = simulation::LinkSpec::parse("rtt=5ms,rate=1Gbit,loss=0.01,reorder=0.01,dup=0.01,queue=50ms").value();
  network.link.seed = seed;
  ConnectionOptions options;
  options.scheme = GetParam();
  options.data_chunks = 8;
  options.parity_chunks = 2;
  options.queue_pair.mtu = {1024};
  options.queue_pair.packets_per_chunk = 2;
  options.queue_pair.max_message = 512_KiB;  // a Write is several transfers
  options.queue_pair.rate = {1e9};
  ConnectionPair pair(network, options);
  ASSERT_TRUE(pair.get_ready());

  const std::vector<std::byte> data = random_bytes((3 << 20) + 1000, seed);
  std::array<std::vector<std::byte>, 2> buffers{std::vector<std::byte>(data.size() + 5000), {}};
  buffers[1].resize(data.size());
  EXPECT_FALSE(pair.b().landed_prefix()) << "nothing is posted";
  for (std::vector<std::byte>& buffer : buffers) {
    ASSERT_TRUE(pair.b().post_receive(buffer));
    ASSERT_TRUE(pair.a().post_write(data));
  }
  std::uint64_t receive = 0;
  std::uint64_t before = 0;
  std::uint64_t complete = 0;
  int grew = 0;
  Connection& reader = pair.b();
  const bool done = pair.run_until(
      [&] {
        if (const auto prefix = reader.landed_prefix()) {
          EXPECT_GE(prefix->handle.number, receive);
          if (prefix->handle.number != receive) before = 0;
          receive = prefix->handle.number;
          EXPECT_GE(prefix->bytes, before) << "of receive " << receive;
          EXPECT_LE(prefix->bytes, data.size());
          const std::vector<std::byte>& buffer = buffers[receive];
          const auto fresh = static_cast<std::ptrdiff_t>(std::min(before, prefix->bytes));
          const auto end = static_cast<std::ptrdiff_t>(prefix->bytes);
          EXPECT_TRUE(std::equal(buffer.begin() + fresh, buffer.begin() + end, data.begin() + fresh));
          grew += prefix->bytes > before ? 1 : 0;
          before = prefix->bytes;
        }
        while (reader.poll_receive()) ++complete;
        return complete == buffers.size();
      },
      seconds(60));
  EXPECT_TRUE(done);
  EXPECT_GT(grew, 50) << "it comes in pieces";
  EXPECT_FALSE(reader.landed_prefix()) << "all receives are complete";
}

INSTANTIATE_TEST_SUITE_P(Schemes, LandedPrefix, ::testing::ValuesIn(kAllSchemes),
                         [](const auto& scheme) { return identifier(scheme.param); });

}  // namespace
}  // namespace sdr::testing
