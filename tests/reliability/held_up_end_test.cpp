// Ends that are kept from their core between reading the clock and looking at the network: what they take in came after
// the time that they hold it to be.
#include <gtest/gtest.h>

#include "tests/reliability/pair.hpp"
#include "tests/transport/wrapped_device.hpp"

namespace sdr {
namespace {

using namespace testing;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// By how much a held-up end's clock is behind the network.
struct HoldUp {
  Duration lag{0};
};

class HeldUpEndpoint final : public testing_support::ForwardingEndpoint {
 public:
  HeldUpEndpoint(std::unique_ptr<transport::Endpoint> inner, const HoldUp& hold)
      : ForwardingEndpoint(std::move(inner)), hold_(hold) {}

  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now) override {
    return ForwardingEndpoint::poll(channel, out, now + hold_.lag);
  }
  std::size_t write(std::span<const transport::Packet> packets, TimePoint now) override {
    return ForwardingEndpoint::write(packets, now + hold_.lag);
  }
  bool send_control(std::span<const std::byte> datagram, TimePoint now) override {
    return ForwardingEndpoint::send_control(datagram, now + hold_.lag);
  }
  std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now) override {
    return ForwardingEndpoint::receive_control(into, now + hold_.lag);
  }
  void advance(TimePoint now) override { ForwardingEndpoint::advance(now + hold_.lag); }

 private:
  const HoldUp& hold_;
};

DevicePtr held_up(transport::Device& inner, const HoldUp& hold) {
  return std::make_shared<testing_support::WrappedDevice>(
      inner, [&hold](std::unique_ptr<transport::Endpoint> endpoint) {
        return std::make_unique<HeldUpEndpoint>(std::move(endpoint), hold);
      });
}

TEST(HeldUpEnd, ThatReadsItsClockTooEarly_DoesNotBelieveInAShorterPath) {
  constexpr Duration kRtt = milliseconds(2);
  constexpr Duration kHeld = microseconds(900);
  transport::SimulatedNetwork network(
      {.link = simulation::LinkSpec::parse("rtt=2ms,rate=100Mbit,queue=20ms").value(), .carry_payload = false});
  HoldUp hold;
  ConnectionOptions options;
  options.queue_pair.mtu = Bytes{1456};
  options.queue_pair.max_message = 16_MiB;
  options.queue_pair.token = 1;
  const DevicePtr held = held_up(network.device(Site::A), hold);
  const DevicePtr other(&network.device(Site::B), [](transport::Device*) {});
  auto a = Connection::create(held, options).value();
  options.queue_pair.token = 2;
  auto b = Connection::create(other, options).value();
  ASSERT_TRUE(a->connect(b->info()));
  ASSERT_TRUE(b->connect(a->info()));

  std::vector<std::byte> data(4'000'000);
  ASSERT_TRUE(b->post_receive(data));
  ASSERT_TRUE(a->post_write(data));
  TimePoint now(seconds(1));
  TimePoint next_a = now;
  TimePoint next_b = now;
  const TimePoint stop = now + seconds(5);
  bool done = false;
  for (int drive = 0; now < stop && !done; ++drive) {
    next_b = b->progress(now);
    if (now >= std::min(next_a, network.endpoint(Site::A)->next_event())) {
      // Every second time that it is called anew it gets no further than its clock for a while.
      hold.lag = drive % 2 == 0 ? kHeld : Duration::zero();
      next_a = a->progress(now);
      now += hold.lag;
      hold.lag = Duration::zero();
    }
    done = a->poll_write().has_value();
    const TimePoint next = std::min(std::min(next_a, next_b), std::min(network.endpoint(Site::A)->next_event(),
                                                                       network.endpoint(Site::B)->next_event()));
    now = std::max(next, now + Duration(1));
  }
  ASSERT_TRUE(done);
  EXPECT_GE(a->statistics().rate.rtt_min, kRtt) << "what came while it was held up seemed to have come before that";
  EXPECT_LE(a->statistics().rate.rtt_min, 2 * kRtt);
}

}  // namespace
}  // namespace sdr
