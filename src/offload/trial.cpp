#include "offload/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "offload/trial_message.hpp"
#include "runtime/clock.hpp"

namespace sdr::offload {
namespace {

constexpr std::uint32_t kSlots = 16;
constexpr std::uint32_t kPacketsPerSlot = 2048;
constexpr std::uint32_t kMtu = 4096;
// Parts of 1000 packets.
constexpr std::uint64_t kDuplicates = 10;
constexpr std::uint64_t kStale = 5;
constexpr std::uint64_t kOutOfRange = 1;
// A device that moves but takes no packet for so long is given up.
constexpr Duration kNoProgress = std::chrono::seconds(10);

// One slot, and the message in it.
struct Lane {
  enum class State { Posting, Open, Draining, Completing, Idle };
  State state = State::Posting;
  Ticket ticket = 0;
  std::optional<TrialMessage> message;
  std::uint64_t cut_packets = 0;  // pushed of the message, should it be cut
  std::uint64_t cut_duplicates = 0;
  std::vector<std::uint64_t> drained_at;    // positions of the rings
  std::vector<core::Completion> leftovers;  // of the slot's last use, which was cut
};

class Trial {
 public:
  Trial(const TrialOptions& options, Device& device)
      : options_(options), device_(device), random_(options.seed), lanes_(kSlots) {}

  Result<TrialReport> run() {
    const TimePoint start = runtime::now();
    for (std::uint32_t l = 0; l < kSlots; ++l) post_next(l, Operation::Post, core::Generation(0));
    bool working = true;
    while (working && failed_.ok() && report_.problem.empty()) {
      working = false;
      bool moved = false;
      for (std::uint32_t l = 0; l < kSlots; ++l) {
        moved = advance(l) || moved;
        working = working || lanes_[l].state != Lane::State::Idle;
      }
      moved = emit_some() || moved;
      if (!moved) pause();
    }
    while (failed_.ok() && !all_consumed()) pause();  // what flew when its message was cut
    report_.elapsed = runtime::now() - start;
    report_.device = device_.counts();
    if (!failed_) return failed_.error();
    if (report_.problem.empty()) compare_counts();
    report_.verified = report_.problem.empty();
    return report_;
  }

 private:
  [[nodiscard]] bool enough() const { return report_.pushed >= options_.packets; }
  void wrong(std::string problem) {
    if (report_.problem.empty()) report_.problem = std::move(problem);
  }

  // Lets the device work; its failure, or its standing still, ends the trial.
  void pause() {
    std::this_thread::yield();
    if (++pauses_ % 64 != 0) return;
    if (const Result<void> alive = device_.check(); !alive) {
      failed_ = alive;
      return;
    }
    std::uint64_t consumed = 0;
    for (std::uint32_t c = 0; c < options_.channels; ++c) consumed += ring(c).consumed();
    const TimePoint now = runtime::now();
    if (consumed != consumed_ || moved_ != moved_before_) {
      consumed_ = consumed;
      moved_before_ = moved_;
      progress_ = now;
    }
    if (now - progress_ > kNoProgress) {
      failed_ = Error{ErrorCode::Closed,
                      fmt::format("the device moves but has taken no packet for {}", sdr::to_string(now - progress_))};
    }
  }

  RingProducer<>& ring(std::uint32_t channel) {
    return device_.ring(core::ChannelIndex(static_cast<std::uint8_t>(channel)));
  }

  // False: the trial is over.
  bool push(core::Completion completion) {
    completion.channel = static_cast<std::uint8_t>(report_.pushed % options_.channels);
    while (!ring(completion.channel).push(completion)) {
      pause();
      if (!failed_) return false;
    }
    ++report_.pushed;
    return true;
  }

  void post_next(std::uint32_t l, Operation operation, core::Generation generation) {
    Lane& lane = lanes_[l];
    const core::SlotIndex slot(l);
    lane.message.emplace(
        device_.shape().geometry,
        TrialMessage::Options{.mtu = kMtu, .shuffled = options_.order == TrialOrder::Mix, .clean = options_.clean},
        slot, generation, random_);
    lane.cut_packets = 0;
    lane.cut_duplicates = 0;
    lane.state = Lane::State::Posting;
    take_ticket(lane, operation == Operation::Post ? device_.post(slot, generation, lane.message->packets())
                                                   : device_.repost(slot, generation, lane.message->packets()));
  }

  void take_ticket(Lane& lane, const Result<Ticket>& ticket) {
    if (ticket)
      lane.ticket = *ticket;
    else
      failed_ = ticket.error();
  }

  // The message is over: its slot is completed, and posted again in the same command or a later one.
  void turn_around(std::uint32_t l) {
    Lane& lane = lanes_[l];
    const auto next = static_cast<std::uint8_t>((lane.message->generation().value + 1) % kTrialGenerations);
    if (enough() || random_() % 4 == 0) {
      lane.state = Lane::State::Completing;
      take_ticket(lane, device_.complete(core::SlotIndex(l)));
    } else {
      post_next(l, Operation::Repost, core::Generation(next));
    }
  }

  // Whether something has changed.
  bool advance(std::uint32_t l) {
    Lane& lane = lanes_[l];
    const core::SlotIndex slot(l);
    switch (lane.state) {
      case Lane::State::Idle:
      case Lane::State::Open:
        return false;
      case Lane::State::Posting:
        if (!device_.done(lane.ticket)) return false;
        expect_nothing(slot, "posted");
        lane.state = Lane::State::Open;
        break;
      case Lane::State::Draining:
        if (!drained(lane)) return false;
        verify(lane, slot);
        turn_around(l);
        break;
      case Lane::State::Completing:
        if (!device_.done(lane.ticket)) return false;
        expect_nothing(slot, "completed");
        if (enough() && lane.leftovers.empty()) {
          lane.state = Lane::State::Idle;
        } else {
          const auto next = static_cast<std::uint8_t>((lane.message->generation().value + 1) % kTrialGenerations);
          post_next(l, Operation::Post, core::Generation(next));
        }
        break;
    }
    ++moved_;
    return true;
  }

  bool all_consumed() {
    for (std::uint32_t c = 0; c < options_.channels; ++c)
      if (ring(c).consumed() < ring(c).produced()) return false;
    return true;
  }

  bool drained(const Lane& lane) {
    for (std::uint32_t c = 0; c < options_.channels; ++c)
      if (ring(c).consumed() < lane.drained_at[c]) return false;
    return true;
  }

  void expect_nothing(core::SlotIndex slot, std::string_view what) {
    for (const core::BitmapWord& word : device_.chunk_bits(slot))
      if (word.load(std::memory_order_acquire) != 0)
        return wrong(fmt::format("slot {} has chunk bits after it was {}", slot.value, what));
    if (device_.user_immediate(slot).fragments_seen != 0)
      wrong(fmt::format("slot {} has a user immediate after it was {}", slot.value, what));
  }

  void verify(const Lane& lane, core::SlotIndex slot) {
    if (!lane.message->matches(device_.chunk_bits(slot), device_.user_immediate(slot))) {
      return wrong(fmt::format("message {} in slot {}, generation {}, is not what was pushed of it", report_.messages,
                               slot.value, lane.message->generation().value));
    }
    ++report_.messages;
    report_.chunks += lane.message->whole_chunks();
    report_.packets += lane.cut_packets;
    report_.duplicates += lane.cut_duplicates;
  }

  bool emit_some() {
    bool any = false;
    for (int turn = 0; turn < 256 && failed_.ok(); ++turn) {
      const std::optional<std::uint32_t> l = choose_lane();
      if (!l) break;
      any = true;
      emit(*l);
    }
    return any;
  }

  std::optional<std::uint32_t> choose_lane() {
    // In order stays with its lane until that has nothing left; mixed goes on from a random one.
    if (options_.order == TrialOrder::Mix) turn_ = static_cast<std::uint32_t>(random_());
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      if (lanes_[(turn_ + i) % kSlots].state == Lane::State::Open) {
        turn_ = (turn_ + i) % kSlots;
        return turn_;
      }
    }
    return std::nullopt;
  }

  void emit(std::uint32_t l) {
    Lane& lane = lanes_[l];
    TrialMessage& message = *lane.message;
    const std::uint64_t dice = options_.clean ? 500 : random_() % 1000;
    const bool stale = dice >= kDuplicates && dice < kDuplicates + kStale;
    if (!lane.leftovers.empty() && (stale || message.emitted() || message.to_be_cut())) {
      if (push(lane.leftovers.back())) ++report_.stale;
      lane.leftovers.pop_back();
      return;
    }
    if (message.to_be_cut()) return cut(l);
    if (message.emitted()) {
      lane.state = Lane::State::Draining;
      lane.drained_at.clear();
      for (std::uint32_t c = 0; c < options_.channels; ++c) lane.drained_at.push_back(ring(c).produced());
      return;
    }
    if (push(message.take())) ++lane.cut_packets;
    if (dice < kDuplicates) {
      if (push(message.repeat(random_))) ++lane.cut_duplicates;
    } else if (stale) {
      if (push(message.stale(random_))) ++report_.stale;
    } else if (dice < kDuplicates + kStale + kOutOfRange) {
      emit_out_of_range(message);
    } else if (dice == 999 && !message.allows(device_.chunk_bits(core::SlotIndex(l)))) {
      wrong(fmt::format("slot {} has a chunk bit before all packets of the chunk", l));
    }
  }

  // Past the end of a message that may be cut would be late after the cut: out of range is then the slot.
  void emit_out_of_range(const TrialMessage& message) {
    core::Completion completion = message.past_the_end(random_);
    if (message.is_cut() || random_() % 2 == 0) {
      const core::ImmediateLayout& layout = device_.shape().geometry.layout;
      const auto beyond = static_cast<std::uint32_t>(kSlots + random_() % (layout.max_slots() - kSlots));
      completion.immediate = layout.encode(core::SlotIndex(beyond), core::PacketOffset(0), 0);
    }
    if (push(completion)) ++report_.out_of_range;
  }

  void cut(std::uint32_t l) {
    Lane& lane = lanes_[l];
    if (!lane.message->allows(device_.chunk_bits(core::SlotIndex(l))))
      wrong(fmt::format("slot {} has a chunk bit before all packets of the chunk", l));
    ++report_.cut;
    report_.cut_packets += lane.cut_packets;
    report_.cut_duplicates += lane.cut_duplicates;
    while (!lane.message->emitted() && lane.leftovers.size() < 32) lane.leftovers.push_back(lane.message->take());
    turn_around(l);
  }

  void compare_counts() {
    const DeviceCounts& d = report_.device;
    const auto within = [this](const char* what, std::uint64_t counted, std::uint64_t least, std::uint64_t undecided) {
      if (counted < least || counted > least + undecided)
        wrong(fmt::format("{} {} counted, {} to {} pushed", counted, what, least, least + undecided));
    };
    within("completions", d.total(), report_.pushed, 0);
    within("packets out of range", d.out_of_range, report_.out_of_range, 0);
    within("packets", d.packets, report_.packets, report_.cut_packets);
    within("duplicates", d.duplicates, report_.duplicates, report_.cut_duplicates);
    within("late packets", d.late, report_.stale, report_.cut_packets + report_.cut_duplicates);
    within("errors", d.errors, 0, 0);
  }

  const TrialOptions options_;
  Device& device_;
  std::mt19937_64 random_;
  std::vector<Lane> lanes_;
  TrialReport report_;
  Result<void> failed_;
  std::uint32_t turn_ = 0;
  std::uint64_t pauses_ = 0;
  std::uint64_t moved_ = 0;
  std::uint64_t moved_before_ = 0;
  std::uint64_t consumed_ = 0;
  TimePoint progress_ = runtime::now();
};

}  // namespace

Result<TrialReport> run_trial(const TrialOptions& options) {
  if (!std::has_single_bit(options.chunk_packets) || options.chunk_packets > kPacketsPerSlot) {
    return Error{ErrorCode::InvalidArgument, fmt::format("a chunk of {} packets is not a power of two up to {}",
                                                         options.chunk_packets, kPacketsPerSlot)};
  }
  DeviceOptions device_options{.kind = options.device, .emulator_plugin = options.emulator_plugin};
  Shape& shape = device_options.shape;
  shape.geometry = {.layout = {},
                    .slots = kSlots,
                    .packets_per_slot = kPacketsPerSlot,
                    .log_packets_per_chunk = static_cast<std::uint8_t>(std::countr_zero(options.chunk_packets))};
  shape.mtu = kMtu;
  shape.channels = options.channels;
  shape.workers = options.threads;
  shape.log_ring_entries = 12;
  Result<std::unique_ptr<Device>> device = Device::open(device_options);
  if (!device) return device.error();
  Result<TrialReport> report = Trial(options, **device).run();
  if (!report) return report;
  if (const Result<void> stopped = (*device)->stop(); !stopped) return stopped.error();
  return report;
}

}  // namespace sdr::offload
