// Random sequences of everything a user and a network can do, against what must hold whatever they do.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/core/seed.hpp"
#include "tests/sdk/pair.hpp"

namespace sdr {
namespace {

using namespace testing_support;
using transport::PacketView;
using transport::Site;
using transport::Verdict;

constexpr std::byte kCanary{0xEE};
constexpr std::size_t kMtu = 64;

// A message from both sides. Content is a function of its number alone, so that each byte can be checked at any time.
struct Message {
  std::vector<std::byte> source;
  std::vector<std::byte> target;  // as large as what was posted
  std::vector<std::byte> at_completion;
  std::size_t length = 0;  // of what is sent, once it is
  std::uint32_t user = 0;
  bool completed = false;
  bool sent = false;
};

class World {
 public:
  World(std::uint64_t seed, const PairOptions& options)
      : random_(seed), pair_(options), slots_(options.qp.slots), max_(pair_.a().geometry().max_message) {
    const auto filter = [this](const PacketView& view) {
      const std::uint64_t draw = random_() % 100;
      if (draw < drop_) return Verdict::Drop;
      // Only data is held for long, and only so many reuses of its slot as the generations tell apart.
      return view.kind == PacketView::Kind::Data && draw < drop_ + hold_ ? Verdict::Hold : Verdict::Pass;
    };
    pair_.network().set_filter(Site::A, filter);
    pair_.network().set_filter(
        Site::B, [this](const PacketView&) { return random_() % 100 < drop_ ? Verdict::Drop : Verdict::Pass; });
  }

  void step() {
    switch (random_() % 12) {
      case 0:
      case 1:
        return post_receive();
      case 2:
      case 3:
        return post_send();
      case 4:
        return start_stream();
      case 5:
      case 6:
        return continue_stream();
      case 7:
        return end_stream();
      case 8:
        return complete();
      case 9:
        return change_network();
      default:
        pair_.run_for(std::chrono::microseconds(random_() % 8000));
        check();
    }
  }

  // With the network well again, what is posted from now on must work.
  void settle() {
    drop_ = hold_ = 0;
    pair_.network().release_all(Site::A, pair_.now());
    while (!streams_.empty()) end_stream();
    pair_.run_for(std::chrono::seconds(3));
    check();
    for (std::uint64_t number = 0; number < posted_; ++number)
      if (!messages_[number].completed) finish(number);
    // Sends behind the receives that were given up, then a fresh one.
    while (next_send_ < posted_) {
      ASSERT_TRUE(pair_.run_until([&] { return grant().has_value(); })) << "no CTS for " << next_send_;
      post_send();
    }
    post_receive();
    const std::uint64_t number = posted_ - 1;
    ASSERT_TRUE(pair_.run_until([&] { return grant().has_value(); }));
    post_send();
    ASSERT_TRUE(messages_[number].sent);
    const auto chunk = pair_.a().geometry().chunk_bytes;
    const auto chunks = static_cast<std::uint32_t>((messages_[number].length + chunk - 1) / chunk);
    ASSERT_TRUE(pair_.run_until([&] { return pair_.chunks({number}) == chunks; }));
    check();
  }

  [[nodiscard]] std::uint64_t messages() const { return posted_; }

 private:
  std::optional<Grant> grant() {
    pair_.a().want_grant();
    return pair_.a().next_grant();
  }

  void post_receive() {
    Message message;
    message.target.assign(random_() % 4 == 0 ? max_ : random_() % (max_ + 1), kCanary);
    const auto receive = pair_.b().post_receive(message.target, posted_);
    const bool slot_is_free = posted_ < slots_ || messages_[posted_ - slots_].completed;
    ASSERT_EQ(receive.ok(), slot_is_free);
    if (!receive.ok()) {
      ASSERT_EQ(receive.error().code, ErrorCode::Retry);
      return;
    }
    ASSERT_EQ(receive->number, posted_);
    message.source = pattern(max_, posted_);
    message.user = static_cast<std::uint32_t>(random_());
    messages_[posted_++] = std::move(message);
  }

  void post_send() {
    const auto room = grant();
    if (!room) {
      const auto refused = pair_.a().post_send({}, std::nullopt);
      ASSERT_FALSE(refused.ok());
      ASSERT_EQ(refused.error().code, ErrorCode::Retry);
      return;
    }
    Message& message = messages_.at(next_send_);
    const std::size_t length = std::min<std::size_t>(room->max_length, random_() % (max_ + 1));
    check_grant(*room);
    const auto send = pair_.a().post_send(std::span(message.source).first(length), message.user);
    if (!send.ok()) {
      ASSERT_EQ(send.error().code, ErrorCode::Retry);
      return;
    }
    ASSERT_EQ(send->number, next_send_);
    message.length = length;
    message.sent = true;
    ++next_send_;
  }

  void check_grant(const Grant& room) {
    // A receive that was completed before the sender heard of it is granted without its particulars.
    const Message& message = messages_.at(next_send_);
    if (message.completed) return;
    ASSERT_EQ(room.tag, next_send_);
    ASSERT_EQ(room.max_length, message.target.size());
  }

  void start_stream() {
    const auto room = grant();
    if (!room || streams_.size() >= 3) return;
    Message& message = messages_.at(next_send_);
    check_grant(*room);
    const auto stream = pair_.a().start_stream(message.user);
    ASSERT_TRUE(stream.ok());
    ASSERT_EQ(stream->number, next_send_++);
    message.length = std::min<std::size_t>(room->max_length, random_() % (max_ + 1));
    message.sent = true;
    streams_.push_back(*stream);
  }

  void continue_stream() {
    if (streams_.empty()) return;
    const SendHandle stream = streams_[random_() % streams_.size()];
    const Message& message = messages_.at(stream.number);
    if (message.length == 0) return;
    const std::size_t chunk_bytes = pair_.a().geometry().chunk_bytes;
    const std::size_t chunk = random_() % ((message.length + chunk_bytes - 1) / chunk_bytes);
    const auto data = std::span(message.source).first(message.length).subspan(chunk * chunk_bytes);
    // One chunk, or several with the end of the message.
    const auto extent = random_() % 2 == 0 ? data : data.first(std::min(data.size(), chunk_bytes));
    const auto result = pair_.a().continue_stream(stream, static_cast<std::uint32_t>(chunk), extent);
    ASSERT_TRUE(result.ok() || result.error().code == ErrorCode::Retry) << result.error().message;
  }

  void end_stream() {
    if (streams_.empty()) return;
    const std::size_t which = random_() % streams_.size();
    const auto ended = pair_.a().end_stream(streams_[which]);
    if (!ended.ok()) {
      ASSERT_EQ(ended.error().code, ErrorCode::Retry);
      pair_.drive();
      return;
    }
    streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void complete() {
    const std::uint64_t oldest = posted_ < slots_ ? 0 : posted_ - slots_;
    if (posted_ == 0) return;
    const std::uint64_t number = oldest + random_() % (posted_ - oldest);
    if (messages_[number].completed) {
      const auto again = pair_.b().complete({number});
      ASSERT_FALSE(again.ok());
      ASSERT_EQ(again.error().code, ErrorCode::Closed);
      return;
    }
    finish(number);
  }

  void finish(std::uint64_t number) {
    check_open(number);
    ASSERT_TRUE(pair_.b().complete({number}).ok());
    Message& message = messages_[number];
    message.completed = true;
    message.at_completion = message.target;
  }

  void change_network() {
    drop_ = random_() % 3 == 0 ? random_() % 40 : 0;
    hold_ = random_() % 3 == 0 ? random_() % 30 : 0;
    while (pair_.network().held(Site::A) > 0 && random_() % 8 != 0) {
      pair_.network().release(Site::A, random_() % pair_.network().held(Site::A),
                              pair_.now() + std::chrono::microseconds(random_() % 3000));
    }
  }

  void check_open(std::uint64_t number) {
    const Message& message = messages_[number];
    const ChunkBitmap bitmap = pair_.b().chunk_bitmap({number}).value();
    const std::size_t chunk_bytes = pair_.a().geometry().chunk_bytes;
    const std::size_t length = message.sent ? message.length : 0;
    for (std::size_t c = 0; c < bitmap.size() * 64; ++c) {
      if (!bit(bitmap, c)) continue;
      const std::size_t begin = c * chunk_bytes;
      ASSERT_LT(begin, length) << "message " << number << ": chunk " << c << " of something not sent";
      ASSERT_EQ(std::memcmp(&message.target[begin], &message.source[begin], std::min(length - begin, chunk_bytes)), 0)
          << "message " << number << " chunk " << c;
    }
    // Packet by packet: as sent, or untouched.
    const std::vector<std::byte> untouched(kMtu, kCanary);
    for (std::size_t at = 0; at < message.target.size(); at += kMtu) {
      const std::size_t sent = at >= length ? 0 : std::min(kMtu, length - at);
      const std::size_t size = std::min(kMtu, message.target.size() - at);
      const std::byte* const bytes = &message.target[at];
      const bool as_sent = std::memcmp(bytes, &message.source[at], sent) == 0;
      ASSERT_TRUE(as_sent || std::memcmp(bytes, untouched.data(), sent) == 0) << "message " << number << " byte " << at;
      ASSERT_EQ(std::memcmp(bytes + sent, untouched.data(), size - sent), 0) << "message " << number << " byte " << at;
    }
    const auto user = pair_.b().user_immediate({number});
    ASSERT_TRUE(!user.ok() || *user == message.user) << "message " << number;
  }

  void check() {
    for (std::uint64_t number = posted_ < 3 * slots_ ? 0 : posted_ - 3 * slots_; number < posted_; ++number) {
      if (!messages_[number].completed) {
        check_open(number);
      } else {
        ASSERT_EQ(messages_[number].target, messages_[number].at_completion) << "message " << number;
      }
    }
    ASSERT_EQ(pair_.b().counters().rejected_packets, 0U);
    ASSERT_EQ(pair_.b().counters().out_of_range_packets, 0U);
  }

  std::mt19937_64 random_;
  Pair pair_;
  std::uint64_t slots_;
  std::size_t max_;
  std::map<std::uint64_t, Message> messages_;
  std::vector<SendHandle> streams_;
  std::uint64_t posted_ = 0;
  std::uint64_t next_send_ = 0;
  std::uint64_t drop_ = 0;
  std::uint64_t hold_ = 0;
};

TEST(RandomOperations, KeepEveryPromise) {
  const std::uint64_t first_seed = test_seed();
  for (std::uint64_t run = 0; run < 40; ++run) {
    const std::uint64_t seed = first_seed + run;
    SCOPED_TRACE(seed_trace(seed));
    std::mt19937_64 random(seed);
    QueuePairOptions options{.mtu = Bytes{kMtu},
                             .packets_per_chunk = 1U << random() % 8,
                             .max_message = 16_KiB,
                             .slots = 1U << random() % 4,
                             .channels = static_cast<std::uint8_t>(1 + random() % 5),
                             .generations = 255,  // so that no packet is held for longer than they tell apart
                             .initial_rtt = std::chrono::milliseconds(2)};
    if (random() % 2 == 0) options.rate = {static_cast<double>(1'000'000 + random() % 1'000'000'000)};
    World world(seed, {.link = link("rtt=2ms,reorder=0.05,dup=0.02,jitter=100us"), .qp = options});
    for (int step = 0; step < 400; ++step) {
      world.step();
      if (testing::Test::HasFatalFailure()) return;
    }
    world.settle();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace sdr
