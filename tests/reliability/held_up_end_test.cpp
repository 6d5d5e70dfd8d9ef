// Ends that are kept from their core between reading the clock and looking at the network: what they take in came after
// the time that they hold it to be.
#include <gtest/gtest.h>

#include "tests/reliability/pair.hpp"

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

class HeldUpEndpoint final : public transport::Endpoint {
 public:
  HeldUpEndpoint(std::unique_ptr<transport::Endpoint> inner, const HoldUp& hold)
      : inner_(std::move(inner)), hold_(hold) {}

  [[nodiscard]] const transport::EndpointFacts& facts() const override { return inner_->facts(); }
  [[nodiscard]] transport::EndpointCounters counters() const override { return inner_->counters(); }
  [[nodiscard]] std::vector<std::byte> info() const override { return inner_->info(); }
  Result<void> connect(std::span<const std::byte> remote_info) override { return inner_->connect(remote_info); }
  [[nodiscard]] std::string peer_name() const override { return inner_->peer_name(); }
  transport::Aim expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) override {
    return inner_->expose(slot, generation, buffer);
  }
  void retract(core::SlotIndex slot) override { inner_->retract(slot); }
  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now) override {
    return inner_->poll(channel, out, now + hold_.lag);
  }
  std::size_t write(std::span<const transport::Packet> packets, TimePoint now) override {
    return inner_->write(packets, now + hold_.lag);
  }
  [[nodiscard]] std::uint64_t writes_finished() const override { return inner_->writes_finished(); }
  bool send_control(std::span<const std::byte> datagram, TimePoint now) override {
    return inner_->send_control(datagram, now + hold_.lag);
  }
  std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now) override {
    return inner_->receive_control(into, now + hold_.lag);
  }
  void advance(TimePoint now) override { inner_->advance(now + hold_.lag); }
  [[nodiscard]] int channel_fd(core::ChannelIndex channel) const override { return inner_->channel_fd(channel); }
  [[nodiscard]] int control_fd() const override { return inner_->control_fd(); }
  [[nodiscard]] TimePoint next_event() const override { return inner_->next_event(); }

 private:
  std::unique_ptr<transport::Endpoint> inner_;
  const HoldUp& hold_;
};

class HeldUpDevice final : public transport::Device {
 public:
  HeldUpDevice(transport::Device& inner, const HoldUp& hold) : inner_(inner), hold_(hold) {}
  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] Result<std::uint16_t> max_payload(const std::string& remote) const override {
    return inner_.max_payload(remote);
  }
  Result<std::unique_ptr<transport::Endpoint>> create_endpoint(const transport::EndpointOptions& options) override {
    auto made = inner_.create_endpoint(options);
    if (!made) return made.error();
    return std::unique_ptr<transport::Endpoint>(std::make_unique<HeldUpEndpoint>(std::move(made).value(), hold_));
  }

 private:
  transport::Device& inner_;
  const HoldUp& hold_;
};

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
  const DevicePtr held(std::make_shared<HeldUpDevice>(network.device(Site::A), hold));
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
