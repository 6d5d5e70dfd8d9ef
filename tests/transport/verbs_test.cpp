// What is of verbs alone: late packets against the NIC's keys, and what may go wrong with queue pairs, ports and peers.
// Needs two RDMA devices that the environment names (verbs_network.hpp); skipped with a word otherwise.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <random>
#include <thread>

#include "conformance_suite.hpp"
#include "verbs_network.hpp"

namespace sdr::transport::conformance {
namespace {

using namespace std::chrono_literals;

class VerbsPair : public testing::Test {
 protected:
  static EndpointOptions default_options() {
    return {.token = 0x1122334455667788, .slots = 4, .channels = 1, .generations = 2, .payload = 1024};
  }

  void SetUp() override {
    if (!verbs_pair()) GTEST_SKIP() << kNoVerbs;
    start(default_options(), VerbsKeys::Region);
  }
  void start(const EndpointOptions& options, VerbsKeys keys) {
    options_ = options;
    EndpointOptions of_a = options;
    of_a.token = ~options.token;
    network_ = VerbsNetwork::make(of_a, options, keys);
    ASSERT_NE(network_, nullptr);
  }
  Endpoint& a() { return network_->a(); }
  Endpoint& b() { return network_->b(); }

  Packet packet(const Target& to, std::uint32_t offset, std::span<const std::byte> bytes) const {
    return {.local = bytes.data(),
            .immediate = options_.layout.encode(to.slot, PacketOffset(offset), 0),
            .length = static_cast<std::uint16_t>(bytes.size()),
            .generation = to.generation,
            .channel = ChannelIndex(0),
            .aim = &to.aim};
  }
  Target expose(std::uint32_t slot, std::uint8_t generation, std::span<std::byte> buffer) {
    return {SlotIndex(slot), Generation(generation),
            b().expose(SlotIndex(slot), Generation(generation), buffer).value()};
  }
  // Drives both ends until `done`, or for as long as that; the completions at b are added to completions_.
  template <typename Condition>
  bool until(Condition done, Duration patience = kPatience) {
    const TimePoint end = network_->now() + patience;
    std::array<Completion, Endpoint::kPollBatch> batch;
    std::vector<std::byte> datagram(a().facts().max_control);
    for (;;) {
      a().advance(network_->now());
      b().advance(network_->now());
      const std::size_t n = b().poll(ChannelIndex(0), batch, network_->now());
      completions_.insert(completions_.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(n));
      while (a().receive_control(datagram, network_->now())) ++controls_at_a_;
      while (b().receive_control(datagram, network_->now())) ++controls_at_b_;
      if (done()) return true;
      if (network_->now() > end) return false;
      network_->step();
    }
  }
  void wait(Duration time) {
    until([] { return false; }, time);
  }

  std::unique_ptr<VerbsNetwork> network_;
  EndpointOptions options_;
  std::vector<Completion> completions_;
  std::size_t controls_at_a_ = 0;
  std::size_t controls_at_b_ = 0;
};

class VerbsLate : public VerbsPair, public testing::WithParamInterface<VerbsKeys> {
 protected:
  void SetUp() override {
    VerbsPair::SetUp();
    if (!IsSkipped() && environment("SDR_TEST_VERBS_HOLD").empty()) GTEST_SKIP() << "nothing holds packets back here";
  }
};
class VerbsFailure : public VerbsPair {};

INSTANTIATE_TEST_SUITE_P(, VerbsLate, testing::Values(VerbsKeys::Region, VerbsKeys::Window),
                         [](const auto& instance) { return std::string(to_string(instance.param)); });

// The old use's packets come when its slot has been through all generations and is the same use again by name.
TEST_P(VerbsLate, PacketsHeldBack_UntilTheirSlotHasWrappedAround_TouchNoByteAndNoBit) {
  start(default_options(), GetParam());
  constexpr std::uint32_t kPackets = 8;
  std::vector<std::byte> memory(kPackets * std::size_t{options_.payload}, kCanary);
  const auto registered = network_->device().register_memory(memory);
  ASSERT_TRUE(registered.ok()) << registered.error().message;
  const auto bytes = pattern(memory.size(), 1);
  const Target old = expose(1, 0, memory);
  std::vector<Packet> late;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    late.push_back(packet(old, i, std::span(bytes).subspan(i * std::size_t{options_.payload}, options_.payload)));
  }
  network_->hold();
  ASSERT_EQ(a().write(late, network_->now()), kPackets);
  ASSERT_TRUE(until([&] { return a().writes_finished() == kPackets; }));
  Target current = old;
  for (std::uint8_t use = 1; use <= 2 * options_.generations; ++use) {
    b().retract(SlotIndex(1));
    current = expose(1, static_cast<std::uint8_t>(use % options_.generations), memory);
  }
  ASSERT_EQ(current.generation, old.generation);
  network_->release();
  // What is sent now comes after them.
  const auto fresh = pattern(options_.payload, 2);
  const Packet now = packet(current, 3, fresh);
  ASSERT_EQ(a().write({&now, 1}, network_->now()), 1U);
  ASSERT_TRUE(until([&] { return !completions_.empty(); }));
  wait(200ms);
  EXPECT_EQ(completions_.size(), 1U);
  std::vector<std::byte> expected(memory.size(), kCanary);
  std::copy(fresh.begin(), fresh.end(), expected.begin() + 3 * options_.payload);
  EXPECT_TRUE(memory == expected) << "a late packet landed";
  b().retract(SlotIndex(1));
  network_->device().deregister_memory(*registered);
}

// Completes at random moments while packets pour in; the buffer is the caller's at once.
TEST_P(VerbsLate, SlotRetractedUnderFire_IsUntouchedFromThenOn) {
  start(default_options(), GetParam());
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "SDR_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  constexpr std::uint32_t kPackets = 64;
  std::vector<std::byte> memory(kPackets * std::size_t{options_.payload});
  const auto registered = network_->device().register_memory(memory);
  ASSERT_TRUE(registered.ok()) << registered.error().message;
  const auto bytes = pattern(memory.size(), seed);
  for (std::uint32_t round = 0; round < 50; ++round) {
    const Target target = expose(0, static_cast<std::uint8_t>(round % options_.generations), memory);
    std::vector<Packet> packets;
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      packets.push_back(
          packet(target, i, std::span(bytes).subspan(i * std::size_t{options_.payload}, options_.payload)));
    }
    std::size_t sent = 0;
    until([&] { return (sent += a().write(std::span(packets).subspan(sent), network_->now())) == kPackets; });
    wait(std::chrono::microseconds(random() % 6000));
    b().retract(SlotIndex(0));
    std::fill(memory.begin(), memory.end(), kCanary);
    completions_.clear();
    ASSERT_TRUE(until([&] { return a().writes_finished() == std::uint64_t{kPackets} * (round + 1); }));
    wait(2ms);
    EXPECT_TRUE(completions_.empty());
    ASSERT_TRUE(std::all_of(memory.begin(), memory.end(), [](std::byte x) { return x == kCanary; }))
        << "round " << round;
  }
  network_->device().deregister_memory(*registered);
}

TEST_F(VerbsFailure, ReceiveQueueThatRunsDry_LosesPacketsAndWorksOn) {
  constexpr std::uint32_t kPackets = 3000;  // more than it holds
  std::vector<std::byte> memory(options_.payload);
  const Target target = expose(0, 0, memory);
  const auto bytes = pattern(options_.payload, 1);
  const std::vector<Packet> packets(kPackets, packet(target, 0, bytes));
  std::size_t sent = 0;
  const TimePoint end = network_->now() + kPatience;
  while (a().writes_finished() < kPackets && network_->now() < end) {
    sent += a().write(std::span(packets).subspan(sent), network_->now());
    a().advance(network_->now());
    network_->step();
  }
  ASSERT_EQ(a().writes_finished(), kPackets) << "the sender does not depend on the receiver";
  wait(200ms);
  EXPECT_LT(completions_.size(), kPackets);
  EXPECT_GE(completions_.size() * options_.payload, b().facts().receive_buffer);
  completions_.clear();
  const Packet one = packet(target, 0, bytes);
  ASSERT_EQ(a().write({&one, 1}, network_->now()), 1U);
  EXPECT_TRUE(until([&] { return !completions_.empty(); }));
}

TEST_F(VerbsFailure, PeerThatIsGone_HoldsNothingUp) {
  std::vector<std::byte> memory(options_.payload);
  const Target target = expose(0, 0, memory);
  const auto bytes = pattern(options_.payload, 1);
  network_->close_b();
  const std::vector<Packet> packets(600, packet(target, 0, bytes));
  std::size_t sent = 0;
  const TimePoint end = network_->now() + kPatience;
  while (a().writes_finished() < packets.size() && network_->now() < end) {
    sent += a().write(std::span(packets).subspan(sent), network_->now());
    a().send_control(std::span(bytes).first(16), network_->now());
    a().advance(network_->now());
    network_->step();
  }
  EXPECT_EQ(a().writes_finished(), packets.size());
}

TEST_F(VerbsFailure, PortThatGoesDownAndComesBack_IsReportedAndMended) {
  if (environment("SDR_TEST_VERBS_DOWN").empty()) GTEST_SKIP() << "nothing takes the port down here";
  std::vector<std::byte> memory(options_.payload, kCanary);
  const Target target = expose(0, 0, memory);
  const auto bytes = pattern(options_.payload, 1);
  const Packet one = packet(target, 0, bytes);
  ASSERT_TRUE(run_command("SDR_TEST_VERBS_DOWN"));
  const std::string well = a().peer_name();
  std::uint64_t taken = 0;
  // All that is sent is lost, none of it hangs, and the name says why.
  EXPECT_TRUE(until([&] {
    taken += a().write({&one, 1}, network_->now());
    a().send_control(std::span(bytes).first(16), network_->now());
    return a().peer_name() != well;
  })) << a().peer_name();
  std::printf("while it is down: %s\n", a().peer_name().c_str());
  wait(2s);
  EXPECT_TRUE(completions_.empty());
  ASSERT_TRUE(run_command("SDR_TEST_VERBS_UP"));
  const std::size_t controls = controls_at_b_;
  EXPECT_TRUE(until([&] {
    taken += a().write({&one, 1}, network_->now());
    a().send_control(std::span(bytes).first(16), network_->now());
    return !completions_.empty() && controls_at_b_ > controls;
  })) << a().peer_name();
  EXPECT_EQ(a().peer_name(), well);
  EXPECT_TRUE(memory == bytes);
  EXPECT_TRUE(until([&] { return a().writes_finished() == taken; }));
}

TEST_F(VerbsFailure, ReceiveIntoMemoryThatCannotBeRegistered_IsRefusedAndTheEndpointWorksOn) {
  void* const readable = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(readable, MAP_FAILED);
  const auto refused = b().expose(SlotIndex(0), Generation(0), {static_cast<std::byte*>(readable), 4096});
  ::munmap(readable, 4096);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("cannot be registered"), std::string::npos) << refused.error().message;
  std::vector<std::byte> memory(options_.payload);
  const Target target = expose(0, 0, memory);
  const auto bytes = pattern(16, 1);
  const Packet one = packet(target, 0, bytes);
  ASSERT_EQ(a().write({&one, 1}, network_->now()), 1U);
  ASSERT_TRUE(a().send_control(bytes, network_->now()));
  EXPECT_TRUE(until([&] { return !completions_.empty() && controls_at_b_ != 0; }));
}

TEST_F(VerbsFailure, PayloadBeyondThePort_AndGidThatIsNotThere_AreInvalidArguments) {
  EndpointOptions options = default_options();
  options.payload = 8192;
  const auto made = network_->device().create_endpoint(options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::InvalidArgument);
  const auto device = open_verbs({.device = verbs_pair()->b, .gid = 200});
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto endpoint = (*device)->create_endpoint(default_options());
  ASSERT_FALSE(endpoint.ok());
  EXPECT_EQ(endpoint.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(endpoint.error().message.find("200"), std::string::npos) << endpoint.error().message;
}

}  // namespace
}  // namespace sdr::transport::conformance
