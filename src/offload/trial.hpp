// Trial: shows that a device makes of completions exactly what it has to, under fire.
//
// Model: 16 slots are filled with messages of up to 2048 packets over the rings, with 1 % duplicates, 0.5 % packets of
// stale generations and 0.1 % out of range among them. A message that has been pushed and drained is held against what
// it must have come to, chunk bit by chunk bit, and its slot is posted again while the others' packets fly. One in
// eight is cut: given up with its own packets in flight, the rest of which follow later, as late packets of the next
// use. One in eight lacks a packet.
//
// In order: one message after another, each in order over the rings. Mixed: the 16 messages by turns at random, each
// shuffled within a window of 64 packets.
//
// What is exact: every chunk bit and user immediate of every message that was not cut; the slot's bits after its
// completion (none); the counts of the device, but for packets that flew when their message was cut: which of those
// came before the cut is the device's to say, their sum is not.
//
// One thread, beside the device's.
#pragma once

#include <cstdint>
#include <string>

#include "offload/device.hpp"

namespace sdr::offload {

enum class TrialOrder { InOrder, Mix };

struct TrialOptions {
  DeviceKind device = DeviceKind::Host;
  std::uint64_t packets = 1'000'000;  // about
  std::uint32_t threads = 4;
  std::uint32_t channels = 4;
  TrialOrder order = TrialOrder::InOrder;
  std::uint32_t chunk_packets = 16;  // a power of two up to 2048
  bool clean = false;                // every packet once and in its place, no message cut: to count by
  std::uint64_t seed = 1;
  std::string emulator_plugin;
};

struct TrialReport {
  bool verified = false;
  std::string problem;  // the first thing that was not as it has to be
  // What was pushed.
  std::uint64_t pushed = 0;
  std::uint64_t packets = 0;  // of messages that were not cut, once each
  std::uint64_t duplicates = 0;
  std::uint64_t stale = 0;
  std::uint64_t out_of_range = 0;
  std::uint64_t cut_packets = 0;  // of messages that were cut, before the cut
  std::uint64_t cut_duplicates = 0;
  std::uint64_t messages = 0;  // verified, cut ones left out
  std::uint64_t cut = 0;
  std::uint64_t chunks = 0;  // of verified messages
  DeviceCounts device;       // what the device counted
  Duration elapsed{};        // first push to last effect; making the traffic is in it
};

// An error when the device could not be opened or failed; what a working device got wrong is in the report.
Result<TrialReport> run_trial(const TrialOptions& options);

}  // namespace sdr::offload
