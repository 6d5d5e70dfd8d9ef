#include "experiment/turnaround_speed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "experiment/reserved_memory.hpp"
#include "runtime/clock.hpp"
#include "sdr/queue_pair.hpp"
#include "transport/transport.hpp"

namespace sdr::experiment {
namespace {

constexpr std::uint16_t kMtu = 4096;
constexpr std::uint32_t kPacketsPerChunk = 16;
constexpr std::uint32_t kSlots = static_cast<std::uint32_t>(TurnaroundLoad::kMessages);

// Moves nothing. Exposes as a socket's endpoint does, and reports the packets it is told to have received.
class IdleEndpoint final : public transport::Endpoint {
 public:
  explicit IdleEndpoint(const transport::EndpointOptions& options)
      : layout_(options.layout), exposures_(std::make_unique<Exposure[]>(options.slots)) {
    facts_.max_control = 1024;
    facts_.carries_payload = false;
  }

  // From now on poll() reports the packets of a message of `bytes` in `slot`, in order.
  void fill(core::SlotIndex slot, std::uint64_t bytes) {
    slot_ = slot;
    left_ = bytes;
    offset_ = 0;
  }

  [[nodiscard]] const transport::EndpointFacts& facts() const override { return facts_; }
  [[nodiscard]] transport::EndpointCounters counters() const override { return {}; }
  [[nodiscard]] std::vector<std::byte> info() const override { return {}; }
  Result<void> connect(std::span<const std::byte> /*remote_info*/) override { return {}; }
  [[nodiscard]] std::string peer_name() const override { return "nobody"; }

  Result<transport::Aim> expose(core::SlotIndex slot, core::Generation generation,
                                std::span<std::byte> buffer) override {
    Exposure& exposure = exposures_[slot.value];
    exposure.base = buffer.data();
    exposure.length = buffer.size();
    exposure.generation = generation;
    exposure.active.store(true, std::memory_order_release);
    return transport::Aim{};
  }
  void retract(core::SlotIndex slot) override { exposures_[slot.value].active.store(false, std::memory_order_seq_cst); }
  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint /*now*/) override {
    std::size_t n = 0;
    for (; n < out.size() && left_ > 0; ++n, ++offset_) {
      const auto length = static_cast<std::uint16_t>(std::min<std::uint64_t>(left_, kMtu));
      out[n] = {.immediate = layout_.encode(slot_, core::PacketOffset(offset_), 0),
                .length = length,
                .generation = exposures_[slot_.value].generation.value,
                .channel = channel.value};
      left_ -= length;
    }
    return n;
  }

  std::size_t write(std::span<const transport::Packet> packets, TimePoint /*now*/) override { return packets.size(); }
  [[nodiscard]] std::uint64_t writes_finished() const override { return 0; }
  bool send_control(std::span<const std::byte> /*datagram*/, TimePoint /*now*/) override { return true; }
  std::optional<std::size_t> receive_control(std::span<std::byte> /*into*/, TimePoint /*now*/) override {
    return std::nullopt;
  }
  void advance(TimePoint /*now*/) override {}
  [[nodiscard]] int channel_fd(core::ChannelIndex /*channel*/) const override { return -1; }
  [[nodiscard]] int control_fd() const override { return -1; }
  [[nodiscard]] TimePoint next_event() const override { return kNever; }

 private:
  struct Exposure {
    std::byte* base = nullptr;
    std::size_t length = 0;
    core::Generation generation;
    std::atomic<bool> active{false};
  };

  core::ImmediateLayout layout_;
  transport::EndpointFacts facts_;
  std::unique_ptr<Exposure[]> exposures_;
  core::SlotIndex slot_;
  std::uint64_t left_ = 0;
  std::uint32_t offset_ = 0;
};

class IdleDevice final : public transport::Device {
 public:
  [[nodiscard]] std::string name() const override { return "idle"; }
  [[nodiscard]] Result<std::uint16_t> max_payload(const std::string& /*remote*/) const override { return kMtu; }
  Result<std::unique_ptr<transport::Endpoint>> create_endpoint(const transport::EndpointOptions& options) override {
    auto made = std::make_unique<IdleEndpoint>(options);
    endpoint_ = made.get();
    return std::unique_ptr<transport::Endpoint>(std::move(made));
  }
  // The endpoint made last.
  [[nodiscard]] IdleEndpoint& endpoint() const { return *endpoint_; }

 private:
  IdleEndpoint* endpoint_ = nullptr;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

class TurnaroundLoad::Impl {
 public:
  Impl(std::unique_ptr<QueuePair> queue_pair, IdleEndpoint& endpoint, ReservedMemory memory)
      : queue_pair_(std::move(queue_pair)), endpoint_(endpoint), memory_(std::move(memory)) {}

  Duration run_once(bool filled) {
    const TimePoint start = runtime::now();
    for (RecvHandle& handle : handles_) handle = queue_pair_->post_receive(memory_.bytes()).value();
    const TimePoint posted = runtime::now();
    if (filled) fill();
    const TimePoint full = runtime::now();
    for (const RecvHandle handle : handles_) (void)queue_pair_->complete(handle);
    return (posted - start) + (runtime::now() - full);
  }

 private:
  void fill() {
    for (const RecvHandle handle : handles_) {
      endpoint_.fill(core::SlotIndex(static_cast<std::uint32_t>(handle.number % kSlots)), memory_.bytes().size());
      while (queue_pair_->poll_channel(0, TimePoint{}) != 0) {
      }
    }
  }

  std::unique_ptr<QueuePair> queue_pair_;
  IdleEndpoint& endpoint_;
  ReservedMemory memory_;
  std::array<RecvHandle, kMessages> handles_{};
};

TurnaroundLoad::TurnaroundLoad(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TurnaroundLoad::~TurnaroundLoad() = default;

Result<std::unique_ptr<TurnaroundLoad>> TurnaroundLoad::make(Bytes message) {
  if (message.count == 0 || message.count > kLargest.count) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("a message of {} bytes is not from 1 byte to {}", message.count, to_string(kLargest))};
  }
  Result<ReservedMemory> memory = ReservedMemory::reserve(message.count);
  if (!memory) return memory.error();
  const auto device = std::make_shared<IdleDevice>();
  QueuePairOptions options;
  options.mtu = Bytes{kMtu};
  options.packets_per_chunk = kPacketsPerChunk;
  options.max_message = kLargest;
  options.slots = kSlots;
  auto queue_pair = QueuePair::create(device, options);
  if (!queue_pair) return queue_pair.error();
  return std::unique_ptr<TurnaroundLoad>(new TurnaroundLoad(
      std::make_unique<Impl>(std::move(queue_pair).value(), device->endpoint(), std::move(memory).value())));
}

Duration TurnaroundLoad::run_once(bool filled) {
  return impl_->run_once(filled);
}

Result<TurnaroundSpeed> measure_turnaround_speed(unsigned rounds, std::uint64_t messages) {
  rounds = std::max(rounds, 1U);
  const std::uint64_t runs = std::max<std::uint64_t>(1, messages / TurnaroundLoad::kMessages);
  TurnaroundSpeed speed;
  for (std::uint64_t bytes = 64; bytes <= TurnaroundLoad::kLargest.count; bytes *= 4) {
    auto load = TurnaroundLoad::make(Bytes{bytes});
    if (!load) return load.error();
    std::array<std::vector<double>, 2> seen;
    for (unsigned round = 0; round < rounds; ++round) {
      for (const bool filled : {false, true}) {
        (*load)->run_once(filled);  // into the cache
        Duration spent{0};
        for (std::uint64_t run = 0; run < runs; ++run) spent += (*load)->run_once(filled);
        seen[filled ? 1 : 0].push_back(static_cast<double>(spent.count()) /
                                       static_cast<double>(runs * TurnaroundLoad::kMessages));
      }
    }
    speed.points.push_back(
        {.message_bytes = bytes, .post_complete_ns = median(seen[1]), .untouched_post_complete_ns = median(seen[0])});
  }
  return speed;
}

}  // namespace sdr::experiment
