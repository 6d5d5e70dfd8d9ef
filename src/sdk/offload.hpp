// Offload: the work of a QueuePair on every packet, given to another processor.
//
// Model: an Offload makes an OffloadEngine for each QueuePair. Its receive half owns the message table: it is told
// which slots are posted and completed and given the completions that the transport raises, and it sets the chunk bits.
// Its send half turns extents into packets. Which processor that is, is not the sdk's to know (src/offload has two).
//
// When the engine's device fails, the engine carries on by itself, on this host and on the same table: what was
// reported stays, completions that the device had not got to are taken up, and nobody above has to do anything.
// failure() says that it happened.
//
// Threads: take(channel) from one thread a channel; failure(), counts() and pending() from any; the rest from the
// thread that drives the QueuePair. Nothing waits for longer than the device's silence bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/completion.hpp"
#include "core/message_table.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::sdk {

struct OffloadShape {
  core::TableGeometry geometry;
  std::uint32_t mtu = 0;
  std::uint8_t channels = 1;
  std::uint32_t burst = 1;  // packets that stay on one channel in a row
};

struct OffloadCounts {
  std::uint64_t packets = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t late = 0;
  std::uint64_t out_of_range = 0;
  std::uint64_t packets_made = 0;  // for sending
};

// Packets [first, first + ...) of a slot, and zero-length ones behind them.
struct SendExtent {
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  core::SlotIndex slot;
  core::Generation generation;
  std::uint32_t first = 0;
  std::uint32_t trailing = 0;
  std::uint32_t user_immediate = 0;
};

struct SendWork {
  const std::byte* data = nullptr;
  std::uint32_t immediate = 0;
  std::uint16_t length = 0;
  core::Generation generation;
  core::ChannelIndex channel;
};

class OffloadEngine {
 public:
  virtual ~OffloadEngine() = default;

  // Which halves it has; sends() ends with a failure.
  [[nodiscard]] virtual bool receives() const = 0;
  [[nodiscard]] virtual bool sends() const = 0;

  // The table as the engine keeps it: for reading.
  [[nodiscard]] virtual const core::MessageTable& table() const = 0;
  // Each has taken effect when it returns. complete(): the transport places nothing more into the slot.
  virtual void post(core::SlotIndex slot, core::Generation generation, std::uint32_t packets) = 0;
  virtual void complete(core::SlotIndex slot) = 0;
  // As core::apply_end(); takes effect a little later.
  virtual void end(core::SlotIndex slot, std::uint32_t packets) = 0;
  virtual void take(core::ChannelIndex channel, std::span<const core::Completion> completions) = 0;
  // Whether completions were given to it that have not had their effect yet.
  [[nodiscard]] virtual bool pending() const = 0;

  // False: not now, too many are under way.
  virtual bool submit(const SendExtent& extent) = 0;
  // The next packets of what was submitted, in order, as far as they are made; they stay until they are sent().
  virtual std::size_t made(std::span<SendWork> out) = 0;
  virtual void sent(std::size_t packets) = 0;

  // Looks after the device now and then.
  virtual void look(TimePoint now) = 0;
  [[nodiscard]] virtual std::optional<Error> failure() const = 0;
  [[nodiscard]] virtual OffloadCounts counts() const = 0;
  [[nodiscard]] virtual std::string_view device() const = 0;
};

class Offload {
 public:
  virtual ~Offload() = default;
  virtual Result<std::unique_ptr<OffloadEngine>> attach(const OffloadShape& shape) = 0;
};

}  // namespace sdr::sdk
