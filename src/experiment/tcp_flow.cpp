// The TCP flow of a SharedTrial: a sender and a receiver, and what is under way between them.
#include <algorithm>
#include <optional>

#include "experiment/shared_flow.hpp"
#include "simulation/arrival_queue.hpp"
#include "simulation/tcp_receiver.hpp"
#include "simulation/tcp_sender.hpp"

namespace sdr::experiment {
namespace {

using simulation::SharedWay;
using simulation::TcpAck;
using simulation::TcpData;

constexpr std::uint32_t kHeaders = 52;   // IPv4, TCP with timestamps
constexpr std::uint32_t kAckBlock = 8;   // of a selective acknowledgement, and
constexpr std::uint32_t kAckBlocks = 4;  // for there being any

// One direction: what was sent and what has arrived, kept while the way has a number for it.
template <typename Item>
class Lane final : public SharedWay::Traveller {
 public:
  struct Arrived {
    Item item;
    bool marked;
  };

  Lane(SharedWay& way, Duration further) : way_(way), flow_(way.add_flow(*this, further)) {}

  void send(const Item& item, std::uint32_t bytes, bool ecn_capable, TimePoint now) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(under_way_.size()));
      under_way_.emplace_back();
    }
    const std::uint32_t cargo = free_.back();
    under_way_[cargo] = item;
    if (way_.offer(flow_, cargo, bytes, ecn_capable, now)) free_.pop_back();
  }
  std::optional<Arrived> take(TimePoint now) {
    const Arrived* due = arrived_.due(now);
    if (due == nullptr) return std::nullopt;
    const Arrived taken = *due;
    arrived_.pop();
    return taken;
  }
  [[nodiscard]] TimePoint next() const { return arrived_.next(); }
  [[nodiscard]] std::uint32_t flow() const { return flow_; }

  void arrive(std::uint32_t cargo, TimePoint at, bool marked, bool last) override {
    arrived_.push(at, {under_way_[cargo], marked});
    if (last) free_.push_back(cargo);
  }
  void perish(std::uint32_t cargo) override { free_.push_back(cargo); }

 private:
  SharedWay& way_;
  std::uint32_t flow_;
  std::vector<Item> under_way_;
  std::vector<std::uint32_t> free_;
  simulation::ArrivalQueue<Arrived> arrived_;
};

class TcpFlow final : public SharedFlow {
 public:
  TcpFlow(const FlowSpec& spec, const simulation::LinkSpec& link, const Place& place)
      : segment_(link.mtu - kHeaders),
        size_(spec.size.count),
        ecn_(spec.ecn),
        data_(place.forward, place.further / 2),
        acks_(place.backward, place.further - place.further / 2),
        sender_(spec.kind == FlowKind::TcpCubic ? simulation::make_tcp_cubic(spec.hystart)
                                                : simulation::make_tcp_bbr(place.seed),
                size_ == 0 ? UINT64_MAX : (size_ + segment_ - 1) / segment_) {}

  Result<void> begin(TimePoint now) override {
    begun_ = true;
    drive(now);
    return {};
  }

  void drive(TimePoint now) override {
    while (const auto arrived = data_.take(now)) answer(receiver_.handle(arrived->item, arrived->marked, now), now);
    answer(receiver_.expire(now), now);
    while (const auto arrived = acks_.take(now)) {
      sender_.handle(arrived->item, now);
      send(now);
    }
    send(now);
    if (completed_ == kNever && sender_.done()) completed_ = now;
  }

  [[nodiscard]] TimePoint due() const override {
    return begun_ ? std::min({data_.next(), acks_.next(), receiver_.next_timeout(), sender_.next_timeout()}) : kNever;
  }
  [[nodiscard]] std::uint32_t number() const override { return data_.flow(); }
  [[nodiscard]] std::uint64_t payload() const override {
    const std::uint64_t bytes = receiver_.delivered() * segment_;
    return size_ == 0 ? bytes : std::min(bytes, size_);
  }
  [[nodiscard]] TimePoint completed() const override { return completed_; }
  [[nodiscard]] Sender sender() const override {
    const double wire = segment_ + kHeaders;
    return {.pace = sender_.congestion().pace() * wire * 8,
            .window = static_cast<double>(sender_.congestion().window()) * wire,
            .state = ""};
  }
  void finish(FlowResult& result) const override {
    result.retransmitted = sender_.counts().retransmitted;
    result.timeouts = sender_.counts().timeouts;
  }

 private:
  void send(TimePoint now) {
    while (const std::optional<TcpData> segment = sender_.poll(now)) {
      data_.send(*segment, segment_ + kHeaders, ecn_, now);
    }
  }
  void answer(const std::optional<TcpAck>& ack, TimePoint now) {
    if (!ack) return;
    const std::uint32_t blocks = ack->block_count == 0 ? 0 : kAckBlocks + kAckBlock * ack->block_count;
    acks_.send(*ack, kHeaders + blocks, false, now);
  }

  std::uint32_t segment_;
  std::uint64_t size_;
  bool ecn_;
  bool begun_ = false;
  Lane<TcpData> data_;
  Lane<TcpAck> acks_;
  simulation::TcpSender sender_;
  simulation::TcpReceiver receiver_;
  TimePoint completed_ = kNever;
};

}  // namespace

std::unique_ptr<SharedFlow> make_tcp_flow(const FlowSpec& spec, const simulation::LinkSpec& link,
                                          const SharedFlow::Place& place) {
  return std::make_unique<TcpFlow>(spec, link, place);
}

}  // namespace sdr::experiment
