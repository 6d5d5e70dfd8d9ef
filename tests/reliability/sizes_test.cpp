// Every size arrives exactly, on every scheme, over a path that loses, reorders and duplicates.
#include <gtest/gtest.h>

#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Shape {
  const char* name;
  std::uint32_t mtu;
  std::uint32_t packets_per_chunk;
  std::uint8_t channels;
  std::uint32_t slots;
  std::uint32_t max_chunks;  // in a message
  int k, m;

  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.name; }
};

// Names say MTU, packets a chunk, channels, slots.
constexpr Shape kShapes[] = {
    {"Mtu64_Chunk1_Channels1_Slots64", 64, 1, 1, 64, 16, 4, 2},
    {"Mtu64_Chunk4_Channels2_Slots4", 64, 4, 2, 4, 8, 4, 2},
    {"Mtu64_Chunk16_Channels3_Slots4", 64, 16, 3, 4, 4, 2, 1},
    {"Mtu1456_Chunk1_Channels1_Slots4", 1456, 1, 1, 4, 12, 8, 2},
    {"Mtu1456_Chunk4_Channels3_Slots16", 1456, 4, 3, 16, 8, 4, 1},
    {"Mtu4096_Chunk1_Channels2_Slots8", 4096, 1, 2, 8, 8, 4, 2},
};

class Sizes : public ::testing::TestWithParam<std::tuple<Scheme, Shape>> {
 protected:
  Sizes() : scheme_(std::get<0>(GetParam())), shape_(std::get<1>(GetParam())) {}

  ConnectionOptions options() const {
    ConnectionOptions options;
    options.scheme = scheme_;
    options.data_chunks = shape_.k;
    options.parity_chunks = shape_.m;
    options.queue_pair.mtu = {shape_.mtu};
    options.queue_pair.packets_per_chunk = shape_.packets_per_chunk;
    options.queue_pair.channels = shape_.channels;
    options.queue_pair.slots = shape_.slots;
    options.queue_pair.max_message = {chunk() * shape_.max_chunks};
    options.queue_pair.rate = {1e9};
    return options;
  }
  std::uint64_t chunk() const { return std::uint64_t{shape_.mtu} * shape_.packets_per_chunk; }
  std::uint64_t largest_transfer() const {
    if (scheme_ == Scheme::SrRto || scheme_ == Scheme::SrNack) return chunk() * shape_.max_chunks;
    const auto k = static_cast<std::uint32_t>(shape_.k);
    const auto m = static_cast<std::uint32_t>(shape_.m);
    return chunk() * std::min(shape_.max_chunks, shape_.max_chunks / m * k);
  }
  static transport::SimulatedOptions rough_path(std::uint64_t seed) {
    transport::SimulatedOptions network;
    network.link = simulation::LinkSpec::parse("rtt=2ms,rate=1Gbit,loss=0.02,reorder=0.02,dup=0.02,queue=50ms").value();
    network.link.seed = seed;
    return network;
  }
  void carry(std::vector<Message> messages, std::uint64_t seed) {
    SCOPED_TRACE(seed_trace(seed));
    ConnectionPair pair(rough_path(seed), options());
    pair.set_step(std::chrono::microseconds(20));
    ASSERT_TRUE(pair.get_ready());
    Traffic traffic(pair, Site::A, std::move(messages));
    const bool done = pair.run_until([&] { return traffic.step(); }, seconds(120));
    EXPECT_EQ(traffic.problem(), "");
    EXPECT_TRUE(done) << "stalled: " << traffic.progress();
  }

  Scheme scheme_;
  Shape shape_;
};

TEST_P(Sizes, ZeroToThreeChunksAndAByte_ArriveExact) {
  const std::uint64_t seed = test_seed(11);
  std::mt19937_64 random(seed);
  const std::uint64_t top = 3 * chunk() + 1;
  // All of them where they are few; else those around packets and chunks, and some between.
  std::vector<std::uint64_t> sizes;
  if (top <= 800 && !kSanitized) {
    for (std::uint64_t size = 0; size <= top; ++size) sizes.push_back(size);
  } else {
    for (std::uint64_t packet = 0; packet * shape_.mtu <= top; ++packet)
      for (const int around : {-1, 0, 1})
        if (packet > 0 || around >= 0) sizes.push_back(packet * shape_.mtu + static_cast<std::uint64_t>(around));
    for (int i = 0; i < 60; ++i) sizes.push_back(random() % (top + 1));
  }
  std::vector<Message> messages;
  for (const std::uint64_t size : sizes) {
    Message message{.size = size, .capacity = size, .source = random() % 64, .shift = random() % 64};
    if (random() % 3 == 0) message.capacity += random() % (2 * largest_transfer());
    if (random() % 2 == 0) message.immediate = static_cast<std::uint32_t>(random());
    messages.push_back(message);
  }
  carry(std::move(messages), seed);
}

TEST_P(Sizes, AroundTheLargestTransfer_ArriveExact) {
  const std::uint64_t seed = test_seed(12);
  std::mt19937_64 random(seed);
  std::vector<Message> messages;
  for (const std::uint64_t times : {1U, 2U, 5U}) {
    for (const std::uint64_t around : {0U, 1U, 2U}) {
      const std::uint64_t size = times * largest_transfer() + around - 1;
      messages.push_back({.size = size, .capacity = size, .source = 0, .shift = 0});
      messages.push_back(
          {.size = size, .capacity = size + random() % 9, .source = random() % 64, .shift = random() % 64});
    }
  }
  carry(std::move(messages), seed);
}

// The rest of the receive is passed over: many transfers, more than there are slots.
TEST_P(Sizes, WritesShorterThanTheirReceive_LeaveTheRestUntouched) {
  const std::uint64_t seed = test_seed(13);
  std::mt19937_64 random(seed);
  std::vector<Message> messages;
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t capacity = (1 + random() % 12) * largest_transfer() + random() % 100;
    messages.push_back({.size = i % 4 == 0 ? 0 : random() % (capacity / 3),
                        .capacity = capacity,
                        .immediate = static_cast<std::uint32_t>(i),
                        .source = random() % 64,
                        .shift = random() % 64});
  }
  carry(std::move(messages), seed);
}

TEST_P(Sizes, WriteLargerThanItsReceive_IsRefusedWithBothLengths_AndTheNextWorks) {
  const std::uint64_t seed = test_seed(14);
  SCOPED_TRACE(seed_trace(seed));
  ConnectionPair pair(rough_path(seed), options());
  ASSERT_TRUE(pair.get_ready());
  const std::uint64_t room = 2 * largest_transfer() + 5;
  std::vector<std::byte> first(room), second(room);
  const auto data = random_bytes(room + 1, seed);
  ASSERT_TRUE(pair.b().post_receive(first));
  ASSERT_TRUE(pair.b().post_receive(second));
  const auto too_long = pair.a().post_write(data);
  const auto fits = pair.a().post_write(std::span(data).first(room));
  const auto also = pair.a().post_write(std::span(data).subspan(1, room));
  ASSERT_TRUE(too_long && fits && also);
  std::vector<WriteCompletion> writes;
  std::vector<ReceiveCompletion> receives;
  ASSERT_TRUE(pair.run_until(
      [&] {
        while (auto done = pair.a().poll_write()) writes.push_back(*done);
        while (auto done = pair.b().poll_receive()) receives.push_back(*done);
        return writes.size() == 3 && receives.size() == 2;
      },
      seconds(60)))
      << (pair.b().failure() ? pair.b().failure()->message : "stalled");
  EXPECT_EQ(writes[0].handle.number, too_long->number);
  ASSERT_TRUE(writes[0].error);
  EXPECT_EQ(writes[0].error->code, ErrorCode::InvalidArgument);
  EXPECT_NE(writes[0].error->message.find(std::to_string(room + 1)), std::string::npos) << writes[0].error->message;
  EXPECT_NE(writes[0].error->message.find(std::to_string(room) + " bytes"), std::string::npos)
      << writes[0].error->message;
  for (int i = 1; i < 3; ++i) EXPECT_FALSE(writes[static_cast<std::size_t>(i)].error);
  for (const ReceiveCompletion& done : receives) EXPECT_FALSE(done.error);
  EXPECT_EQ(std::memcmp(first.data(), data.data(), room), 0);
  EXPECT_EQ(std::memcmp(second.data(), data.data() + 1, room), 0);
}

TEST_P(Sizes, WritesTooLong_AmongManyQueuedOnes_AreRefusedAndTheOthersArrive) {
  constexpr std::size_t kWrites = 60;
  const std::uint64_t room = largest_transfer() / 2;
  ConnectionPair pair(rough_path(17), options());
  const std::vector<std::byte> data = random_bytes(room + 1, 18);
  std::vector<std::vector<std::byte>> buffers(kWrites * 2 / 3, std::vector<std::byte>(room));
  // All are queued before any has a place: the refused ones stand anywhere in the queue.
  for (std::size_t i = 0; i < kWrites; ++i)
    ASSERT_TRUE(pair.a().post_write(std::span(data).first(i % 3 == 1 ? room + 1 : room)));
  for (auto& buffer : buffers) ASSERT_TRUE(pair.b().post_receive(buffer));
  std::size_t refused = 0;
  std::size_t written = 0;
  ASSERT_TRUE(pair.run_until(
      [&] {
        while (auto done = pair.a().poll_write()) {
          EXPECT_EQ(done->error.has_value(), done->handle.number % 3 == 1) << done->handle.number;
          ++(done->error ? refused : written);
        }
        return refused + written == kWrites;
      },
      seconds(300)));
  EXPECT_EQ(written, buffers.size());
  for (const auto& buffer : buffers) EXPECT_EQ(std::memcmp(buffer.data(), data.data(), room), 0);
}

TEST_P(Sizes, BothDirectionsAtOnce_ArriveExact) {
  const std::uint64_t seed = test_seed(15);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  ConnectionPair pair(rough_path(seed), options());
  pair.set_step(std::chrono::microseconds(20));
  const auto some = [&] {
    std::vector<Message> messages;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t capacity = random() % (2 * largest_transfer() + 1);
      messages.push_back({.size = capacity - (random() % 2 == 0 ? 0 : random() % (capacity + 1)),
                          .capacity = capacity,
                          .source = random() % 64,
                          .shift = random() % 64});
    }
    return messages;
  };
  Traffic there(pair, Site::A, some(), 64, 64);
  Traffic back(pair, Site::B, some(), 64, 64);
  const auto both = [&] {
    const bool there_done = there.step();
    return back.step() && there_done;
  };
  const bool done = pair.run_until(both, seconds(300));
  EXPECT_EQ(there.problem() + back.problem(), "");
  EXPECT_TRUE(done) << "stalled: " << there.progress() << "; " << back.progress();
}

INSTANTIATE_TEST_SUITE_P(Schemes, Sizes,
                         ::testing::Combine(::testing::ValuesIn(kAllSchemes), ::testing::ValuesIn(kShapes)),
                         [](const auto& test) {
                           return identifier(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
                         });

}  // namespace
}  // namespace sdr::testing
