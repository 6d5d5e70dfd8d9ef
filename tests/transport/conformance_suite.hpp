// TransportConformance: the fixture of the conformance suite (conformance_*test.cpp beside it).
//
// Each file derives its suite from it and picks by trait the networks on which its tests mean something.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "conformance.hpp"
#include "transport/transport.hpp"

namespace sdr::transport::conformance {

using core::ChannelIndex;
using core::Completion;
using core::Generation;
using core::PacketOffset;
using core::SlotIndex;

inline constexpr std::byte kCanary{0xC5};
inline constexpr Duration kPatience = std::chrono::seconds(20);  // of real networks; spent only by a test that fails

// Bytes that differ from each other, from those of other seeds and from the canary.
inline std::vector<std::byte> pattern(std::size_t size, std::uint32_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (auto& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
    if (byte == kCanary) byte = std::byte{0};
  }
  return bytes;
}

inline auto key(const Completion& c) {
  return std::tuple(c.immediate, c.length, c.generation, c.channel);
}

// A place that packets are aimed at: the memory, and all of what the sender must know of it.
struct Target {
  SlotIndex slot;
  Generation generation;
  Aim aim;
};

class TransportConformance : public testing::TestWithParam<NetworkFactory> {
 protected:
  static EndpointOptions default_options() {
    return {.token = 0x1122334455667788, .slots = 16, .channels = 3, .generations = 8, .payload = 1024};
  }

  void SetUp() override { start(default_options()); }

  void start(const EndpointOptions& of_b) {
    network_.reset();
    options_ = of_b;
    EndpointOptions of_a = of_b;
    of_a.token = ~of_b.token;
    network_ = GetParam().make(of_a, of_b);
    ASSERT_NE(network_, nullptr);
  }

  static const NetworkTraits& traits() { return GetParam().traits; }
  Endpoint& a() { return network_->a(); }
  Endpoint& b() { return network_->b(); }

  Target expose(std::uint32_t slot, std::uint8_t generation, std::span<std::byte> buffer) {
    network_->exposing(buffer);
    const Aim aim = b().expose(SlotIndex(slot), Generation(generation), buffer).value();
    EXPECT_EQ(aim.size, b().facts().aim_size);
    return {SlotIndex(slot), Generation(generation), aim};
  }

  Packet packet(const Target& to, std::uint32_t offset, std::span<const std::byte> bytes, std::uint8_t channel = 0,
                std::uint32_t user = 0) {
    return {.local = bytes.data(),
            .immediate = options_.layout.encode(to.slot, PacketOffset(offset), user),
            .length = static_cast<std::uint16_t>(bytes.size()),
            .generation = to.generation,
            .channel = ChannelIndex(channel),
            .aim = to.aim.size == 0 ? nullptr : &to.aim};
  }

  // Polls b on all channels and lets time pass until `done`; false when it never comes.
  template <typename Condition>
  bool until(Condition done) {
    const TimePoint start = network_->now();
    for (;;) {
      poll_once();
      if (done()) return true;
      if (network_->now() - start > kPatience) return false;
      if (!network_->step()) {
        poll_once();
        return done();
      }
    }
  }

  void poll_once() {
    a().advance(network_->now());
    b().advance(network_->now());
    std::array<Completion, Endpoint::kPollBatch> batch;
    for (std::uint8_t c = 0; c < options_.channels; ++c) {
      const std::size_t n = b().poll(ChannelIndex(c), batch, network_->now());
      ASSERT_LE(n, batch.size());
      completions_.insert(completions_.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(n));
    }
  }

  // Writes all, however many calls it takes, never letting more wait unread than the receiver's buffer holds.
  void write_all(std::span<const Packet> packets) {
    const std::uint32_t limit = b().facts().receive_buffer;
    const std::size_t before = completions_.size();
    const auto strays_before = strays();
    std::size_t sent = 0;
    while (sent < packets.size()) {
      std::size_t batch = 0;
      for (std::uint64_t bytes = 0; sent + batch < packets.size() && batch < 512; ++batch) {
        bytes += options_.payload;
        if (limit != 0 && bytes > limit) break;
      }
      ASSERT_GT(batch, 0U) << "the receive buffer of " << limit << " bytes does not hold one packet";
      const std::size_t taken = a().write(packets.subspan(sent, batch), network_->now());
      ASSERT_LE(taken, batch);
      sent += taken;
      // Of what is refused in silence nothing is ever heard; a last batch has room in any case.
      if (traits().lossless && limit != 0 && (traits().counts_strays || sent < packets.size())) {
        ASSERT_TRUE(until([&] { return completions_.size() - before + strays() - strays_before >= sent; }));
      } else if (taken == 0) {
        poll_once();
        ASSERT_TRUE(network_->step()) << "write() takes nothing and nothing is due";
      }
    }
    ASSERT_TRUE(
        until([&] { return b().facts().copies_on_write || a().writes_finished() >= a().counters().packets_sent; }));
  }
  void write_one(const Packet& p) { write_all({&p, 1}); }

  std::uint64_t strays() {
    const EndpointCounters c = b().counters();
    return c.dropped_wrong_token + c.dropped_malformed + c.dropped_out_of_range + c.dropped_not_exposed;
  }

  // Waits for `count` completions since the last call and returns them.
  std::vector<Completion> completed(std::size_t count) {
    EXPECT_TRUE(until([&] { return completions_.size() >= count; }))
        << completions_.size() << " of " << count << " completions came";
    return std::exchange(completions_, {});
  }

  // Sends `p`, which must not be placed, and waits until it has been refused under the name `counter`.
  void expect_refused(const Packet& p, std::uint64_t EndpointCounters::*counter) {
    const EndpointCounters before = b().counters();
    write_one(p);
    if (traits().counts_strays) {
      until([&] {
        const EndpointCounters c = b().counters();
        return c.*counter > before.*counter || c.packets_received > before.packets_received;
      });
      EXPECT_EQ(b().counters().*counter, before.*counter + 1) << "the drop is not counted";
      EXPECT_EQ(b().counters().packets_received, before.packets_received);
    } else {
      fence(p.channel, p.generation);
      EXPECT_EQ(b().counters().packets_received, before.packets_received + 1);
    }
    EXPECT_TRUE(completions_.empty());
  }

  // Returns when all that was sent before on this way, which keeps order, has come or never will: when a packet that
  // was sent after it has. For networks that do not say what they dropped. Takes the last slot.
  void fence(ChannelIndex channel, Generation generation) {
    const Target target = expose(options_.slots - 1, generation.value, {});
    write_one(packet(target, 0, {}, channel.value));
    const auto is_fence = [&](const Completion& c) { return options_.layout.decode(c.immediate).slot == target.slot; };
    EXPECT_TRUE(until([&] { return std::any_of(completions_.begin(), completions_.end(), is_fence); }));
    std::erase_if(completions_, is_fence);
    b().retract(target.slot);
  }

  std::vector<std::byte> receive_control(Endpoint& at) {
    std::vector<std::byte> into(at.facts().max_control);
    std::optional<std::size_t> size;
    EXPECT_TRUE(until([&] { return (size = at.receive_control(into, network_->now())).has_value(); }));
    into.resize(size.value_or(0));
    return into;
  }

  std::unique_ptr<Network> network_;
  EndpointOptions options_;
  std::vector<Completion> completions_;
};

inline std::string network_name(const testing::TestParamInfo<NetworkFactory>& instance) {
  return instance.param.name;
}

}  // namespace sdr::transport::conformance
