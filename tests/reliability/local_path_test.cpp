// Connections between processes of one machine, over UDP loopback with a clock of the test's own: an end that does not
// get its core for a while is no loss, and none is reported.
#include <gtest/gtest.h>

#include "tests/reliability/pair.hpp"
#include "transport/udp.hpp"

namespace sdr {
namespace {

using namespace testing;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class LocalPath : public ::testing::TestWithParam<Scheme> {
 protected:
  void SetUp() override {
    sender = make(1);
    receiver = make(2);
    ASSERT_TRUE(sender && receiver);
    ASSERT_TRUE(sender->connect(receiver->info()).ok());
    ASSERT_TRUE(receiver->connect(sender->info()).ok());
  }

  std::unique_ptr<Connection> sender, receiver;

 private:
  static std::unique_ptr<Connection> make(std::uint64_t token) {
    ConnectionOptions options{.scheme = GetParam()};
    options.queue_pair.mtu = 1440_B;
    options.queue_pair.max_message = Bytes{1440 * 2048};
    options.queue_pair.token = token;
    auto made = Connection::create(
        std::make_shared<transport::UdpDevice>(transport::UdpOptions{.bind_address = "127.0.0.1"}), options);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() ? std::move(made).value() : nullptr;
  }
};

TEST_P(LocalPath, ReceiverThatIsHeldUp_IsSentNothingTwice) {
  constexpr std::size_t kWrites = 8;
  constexpr Duration kRound = microseconds(50);
  constexpr Duration kHeldUp = milliseconds(15);
  const std::vector<std::byte> data(8 << 20, std::byte{7});
  std::vector<std::vector<std::byte>> buffers(kWrites, std::vector<std::byte>(data.size()));
  for (auto& buffer : buffers) ASSERT_TRUE(receiver->post_receive(buffer).ok());
  TimePoint now(seconds(1));
  for (std::size_t done = 0, posted = 0; done < kWrites;) {
    ASSERT_LT(now, TimePoint(seconds(60)));
    if (posted == done) {
      ASSERT_TRUE(sender->post_write(data).ok());
      ++posted;
    }
    now += kRound;
    sender->progress(now);
    // In the midst of each Write.
    if (receiver->bytes_landed() % data.size() > data.size() / 2 && posted % 2 == 1) {
      for (const TimePoint until = now + kHeldUp; now < until; now += kRound) sender->progress(now);
      ++posted;  // one more at the same time
      ASSERT_TRUE(sender->post_write(data).ok());
    }
    receiver->progress(now);
    while (sender->poll_write()) ++done;
  }
  EXPECT_EQ(sender->statistics().chunks_retransmitted, 0U);
  EXPECT_EQ(sender->statistics().packets_lost, 0U);
  EXPECT_EQ(receiver->statistics().host_drops, 0U);
  for (const auto& buffer : buffers) EXPECT_TRUE(buffer == data);
}

TEST_P(LocalPath, ReceiverThatIsSlow_IsSentNothingTwice) {
  const std::vector<std::byte> data(16 << 20, std::byte{7});
  std::vector<std::byte> buffer(data.size());
  ASSERT_TRUE(receiver->post_receive(buffer).ok());
  ASSERT_TRUE(sender->post_write(data).ok());
  TimePoint now(seconds(1));
  for (bool done = false; !done;) {
    ASSERT_LT(now, TimePoint(seconds(60)));
    receiver->progress(now);
    // What has landed takes it a while before it drives again.
    const Duration busy = receiver->bytes_landed() == 0 ? milliseconds(0) : milliseconds(3);
    const TimePoint until = now + busy;
    do {
      now += microseconds(50);
      sender->progress(now);
    } while (now < until);
    done = sender->poll_write().has_value();
  }
  EXPECT_EQ(sender->statistics().chunks_retransmitted, 0U);
  EXPECT_EQ(sender->statistics().packets_lost, 0U);
  EXPECT_TRUE(buffer == data);
}

INSTANTIATE_TEST_SUITE_P(Schemes, LocalPath, ::testing::Values(Scheme::SrRto, Scheme::SrNack, Scheme::Adaptive),
                         [](const auto& of) { return identifier(of.param); });

}  // namespace
}  // namespace sdr
