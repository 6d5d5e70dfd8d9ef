// The simulated network and the emulated link under the conformance suite.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "conformance.hpp"
#include "transport/emulated_link.hpp"
#include "transport/simulated.hpp"

namespace sdr::transport::conformance {
namespace {

using simulation::Direction;
using simulation::LinkSpec;

// `simulated` is the network itself; with `emulated`, each site looks through an emulated link on top of it.
struct Setup {
  const char* simulated = "";
  std::optional<const char*> emulated;
  bool lossless = true;
};

LinkSpec parsed(const char* text) {
  const Result<LinkSpec> spec = LinkSpec::parse(text);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  return *spec;
}

class VirtualNetwork final : public Network {
 public:
  explicit VirtualNetwork(const Setup& setup) : network_({.link = parsed(setup.simulated)}) {
    if (!setup.emulated) return;
    const LinkSpec spec = parsed(*setup.emulated);
    emulated_a_ = std::make_unique<EmulatedLinkDevice>(network_.device(Site::A), spec, Direction::Forward);
    emulated_b_ = std::make_unique<EmulatedLinkDevice>(network_.device(Site::B), spec, Direction::Backward);
  }

  bool start(const EndpointOptions& a, const EndpointOptions& b) {
    auto made_a = (emulated_a_ ? *emulated_a_ : static_cast<Device&>(network_.device(Site::A))).create_endpoint(a);
    auto made_b = device().create_endpoint(b);
    if (!made_a || !made_b) {
      ADD_FAILURE() << (made_a ? made_b.error().message : made_a.error().message);
      return false;
    }
    a_ = std::move(made_a).value();
    b_ = std::move(made_b).value();
    return a_->connect(b_->info()).ok() && b_->connect(a_->info()).ok();
  }

  Device& device() override { return emulated_b_ ? *emulated_b_ : static_cast<Device&>(network_.device(Site::B)); }
  Endpoint& a() override { return *a_; }
  Endpoint& b() override { return *b_; }
  [[nodiscard]] TimePoint now() const override { return now_; }
  bool step() override {
    const TimePoint next = std::min(a_->next_event(), b_->next_event());
    if (next == kNever) return false;
    // Something that waits unread hides what comes after it; time passes all the same.
    now_ = next > now_ ? next : now_ + std::chrono::microseconds(100);
    return true;
  }
  void hold() override {
    network_.set_filter(Site::A, [](const PacketView&) { return Verdict::Hold; });
  }
  void release() override {
    // What an emulated link still has under way comes to the filter only as time passes.
    while (network_.held(Site::A) == 0 && step()) a_->advance(now_);
    network_.set_filter(Site::A, nullptr);
    network_.release_all(Site::A, now_);
  }

 private:
  SimulatedNetwork network_;
  std::unique_ptr<EmulatedLinkDevice> emulated_a_;
  std::unique_ptr<EmulatedLinkDevice> emulated_b_;
  std::unique_ptr<Endpoint> a_;
  std::unique_ptr<Endpoint> b_;
  TimePoint now_{std::chrono::seconds(1)};
};

NetworkFactory factory(std::string name, Setup setup) {
  return {.name = std::move(name),
          .traits = {.lossless = setup.lossless, .can_hold = true},
          .make = [setup](const EndpointOptions& a, const EndpointOptions& b) -> std::unique_ptr<Network> {
            auto network = std::make_unique<VirtualNetwork>(setup);
            if (!network->start(a, b)) return nullptr;
            return network;
          }};
}

[[maybe_unused]] const bool kIdeal = register_network(factory("SimulatedIdeal", {}));
[[maybe_unused]] const bool kLong =
    register_network(factory("SimulatedLong", {.simulated = "rtt=25ms,rate=10Gbit,queue=1s,mtu=9000"}));
[[maybe_unused]] const bool kReordering =
    register_network(factory("SimulatedReordering", {.simulated = "rtt=25ms,rate=10Gbit,queue=1s,reorder=0.2"}));
[[maybe_unused]] const bool kLossy = register_network(
    factory("SimulatedLossy", {.simulated = "rtt=25ms,loss=0.1,burst=3,reorder=0.1,dup=0.1", .lossless = false}));
[[maybe_unused]] const bool kEmulatedIdeal = register_network(factory("EmulatedIdeal", {.emulated = ""}));
[[maybe_unused]] const bool kEmulatedLong = register_network(
    factory("EmulatedLong", {.emulated = "rtt=25ms,rate=10Gbit,queue=1s,reorder=0.2,jitter=1ms,mtu=9000"}));
[[maybe_unused]] const bool kEmulatedLossy =
    register_network(factory("EmulatedLossy", {.emulated = "rtt=25ms,loss=0.1,burst=3,dup=0.1", .lossless = false}));

}  // namespace
}  // namespace sdr::transport::conformance
