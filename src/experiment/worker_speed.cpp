#include "experiment/worker_speed.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/receive_worker.hpp"
#include "runtime/clock.hpp"

namespace sdr::experiment {
namespace {

using core::Completion;
using core::SlotIndex;

constexpr std::uint32_t kSlots = 16;
constexpr std::uint32_t kPacketsPerSlot = 2048;
constexpr std::uint16_t kMtu = 4096;
constexpr std::size_t kBatch = 64;
constexpr core::Generation kGeneration{3};
static_assert(WorkerLoad::kPackets == std::uint64_t{kSlots} * kPacketsPerSlot);

// What there was before batches: every packet sets its bit by itself. The same checks, for full packets.
class AtomicPerPacket {
 public:
  explicit AtomicPerPacket(const core::MessageTable& table) : table_(table) {}

  void process(std::span<const Completion> completions) {
    const core::ImmediateLayout layout = table_.geometry().layout;
    std::uint64_t packets = 0;
    for (const Completion& completion : completions) {
      const core::Immediate immediate = layout.decode(completion.immediate);
      if (immediate.slot.value >= table_.geometry().slots) continue;
      core::Slot& slot = table_.slot(immediate.slot);
      if (slot.state.load(std::memory_order_seq_cst) != (core::kSlotOpen | completion.generation)) continue;
      const std::uint32_t offset = immediate.offset.value;
      if (offset >= slot.packets) continue;
      gather_user_immediate(slot, immediate);
      const std::uint32_t word = offset / core::kWordBits;
      if (!slot.arrived.load(std::memory_order_relaxed)) slot.arrived.store(true, std::memory_order_relaxed);
      core::note_touched(slot, word + 1);
      const std::uint64_t bit = std::uint64_t{1} << (offset % core::kWordBits);
      const std::uint64_t before = table_.packet_bits(immediate.slot)[word].fetch_or(bit, std::memory_order_seq_cst);
      packets += (before & bit) == 0 ? 1 : 0;
      core::publish(table_, immediate.slot, word, before, before | bit);
    }
    packets_.add(packets);
  }

 private:
  void gather_user_immediate(core::Slot& slot, const core::Immediate& immediate) const {
    const core::ImmediateLayout layout = table_.geometry().layout;
    const std::uint32_t which = immediate.offset.value & (layout.fragments() - 1);
    const std::uint32_t seen = std::uint32_t{1} << which;
    if ((slot.fragments_seen.load(std::memory_order_relaxed) & seen) != 0) return;
    slot.user_immediate.fetch_or(immediate.user_fragment << (which * layout.user_bits), std::memory_order_relaxed);
    slot.fragments_seen.fetch_or(seen, std::memory_order_release);
  }

  const core::MessageTable& table_;
  core::Counter packets_;
};

// Packets 0 to kPacketsPerSlot - 1, none further than `window` places from its turn.
std::vector<std::uint32_t> order(std::uint32_t window, std::mt19937_64& random) {
  std::vector<std::uint32_t> packets(kPacketsPerSlot);
  std::iota(packets.begin(), packets.end(), 0U);
  std::vector<std::uint64_t> turns(kPacketsPerSlot);
  for (std::uint32_t p = 0; p < kPacketsPerSlot; ++p) turns[p] = p + random() % window;
  std::stable_sort(packets.begin(), packets.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return turns[a] < turns[b]; });
  return packets;
}

}  // namespace

class WorkerLoad::Impl {
 public:
  Impl(const WorkerLoadOptions& options, WorkerKind kind)
      : interleaved_(options.interleaved),
        slots_(kSlots),
        packet_bits_(std::size_t{kSlots} * geometry(options).packet_words()),
        chunk_bits_(std::size_t{kSlots} * geometry(options).chunk_words()),
        table_(geometry(options), slots_, packet_bits_, chunk_bits_),
        batched_(table_, kMtu),
        atomic_(table_),
        kind_(kind) {
    std::mt19937_64 random(1);
    std::vector<std::vector<std::uint32_t>> orders;
    for (std::uint32_t s = 0; s < kSlots; ++s) orders.push_back(order(options.window, random));
    for (std::uint32_t first = 0; first < kSlots; first += interleaved_) {
      for (std::uint32_t p = 0; p < kPacketsPerSlot; ++p) {
        for (std::uint32_t s = first; s < first + interleaved_; ++s) {
          const core::PacketOffset offset(orders[s][p]);
          completions_.push_back({.immediate = table_.geometry().layout.encode(SlotIndex(s), offset, 0xC0FFEE11),
                                  .length = kMtu,
                                  .generation = kGeneration.value});
        }
      }
    }
    for (std::uint32_t s = 0; s < kSlots; ++s) table_.post(SlotIndex(s), kGeneration, kPacketsPerSlot);
  }

  bool run_once() { return kind_ == WorkerKind::Batched ? run(batched_) : run(atomic_); }

 private:
  static core::TableGeometry geometry(const WorkerLoadOptions& options) {
    return {.layout = {},
            .slots = kSlots,
            .packets_per_slot = kPacketsPerSlot,
            .log_packets_per_chunk = static_cast<std::uint8_t>(std::countr_zero(options.packets_per_chunk))};
  }

  template <typename Worker>
  bool run(Worker& worker) {
    bool complete = true;
    const std::size_t group = std::size_t{interleaved_} * kPacketsPerSlot;
    for (std::uint32_t first = 0; first < kSlots; first += interleaved_) {
      const std::span<const Completion> all(completions_.data() + std::size_t{first} * kPacketsPerSlot, group);
      for (std::size_t at = 0; at < group; at += kBatch) worker.process(all.subspan(at, kBatch));
      for (std::uint32_t s = first; s < first + interleaved_; ++s) complete = turn_around(SlotIndex(s)) && complete;
    }
    return complete;
  }

  bool turn_around(SlotIndex slot) {
    std::uint64_t left = table_.geometry().chunks_per_slot();
    for (const core::BitmapWord& word : table_.chunk_bits(slot)) {
      left -= static_cast<std::uint64_t>(std::popcount(word.load(std::memory_order_acquire)));
    }
    table_.close(slot);
    table_.clean(slot);
    table_.post(slot, kGeneration, kPacketsPerSlot);
    return left == 0;
  }

  std::uint32_t interleaved_;
  std::vector<core::Slot> slots_;
  std::vector<core::BitmapWord> packet_bits_;
  std::vector<core::BitmapWord> chunk_bits_;
  core::MessageTable table_;
  core::ReceiveWorker batched_;
  AtomicPerPacket atomic_;
  WorkerKind kind_;
  std::vector<Completion> completions_;
};

WorkerLoad::WorkerLoad(const WorkerLoadOptions& options, WorkerKind kind)
    : impl_(std::make_unique<Impl>(options, kind)) {}
WorkerLoad::~WorkerLoad() = default;

bool WorkerLoad::run_once() {
  return impl_->run_once();
}

WorkerSpeed measure_worker_speed(unsigned rounds, Duration each) {
  rounds = std::max(rounds, 1U);
  WorkerSpeed speed;
  struct Cell {
    WorkerLoad load;
    double* into;
    std::vector<double> seen{};
  };
  const WorkerLoadOptions in_order{};
  const WorkerLoadOptions shuffled{.window = 64};
  const WorkerLoadOptions small_chunks{.packets_per_chunk = 1};
  std::array<Cell, 5> cells{Cell{WorkerLoad(in_order), &speed.in_order_mpps},
                            Cell{WorkerLoad(shuffled), &speed.shuffled_mpps},
                            Cell{WorkerLoad(small_chunks), &speed.one_packet_chunks_mpps},
                            Cell{WorkerLoad(in_order, WorkerKind::AtomicPerPacket), &speed.atomic_per_packet_mpps},
                            Cell{WorkerLoad(shuffled, WorkerKind::AtomicPerPacket), &speed.atomic_shuffled_mpps}};
  for (unsigned round = 0; round < rounds; ++round) {
    for (Cell& cell : cells) {
      cell.load.run_once();  // into the cache
      std::uint64_t packets = 0;
      const TimePoint start = runtime::now();
      TimePoint end = start;
      do {
        cell.load.run_once();
        packets += WorkerLoad::kPackets;
        end = runtime::now();
      } while (end - start < each);
      cell.seen.push_back(static_cast<double>(packets) * 1e3 / static_cast<double>((end - start).count()));
    }
  }
  for (Cell& cell : cells) {
    const auto middle = cell.seen.begin() + static_cast<std::ptrdiff_t>(cell.seen.size() / 2);
    std::nth_element(cell.seen.begin(), middle, cell.seen.end());
    *cell.into = *middle;
  }
  return speed;
}

}  // namespace sdr::experiment
