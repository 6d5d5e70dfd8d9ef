// The flow of the real protocol in a SharedTrial: two Connections, and Writes one after another.
#include <algorithm>
#include <array>
#include <cmath>

#include "experiment/reserved_memory.hpp"
#include "experiment/shared_flow.hpp"
#include "sdk/table_geometry.hpp"
#include "simulation/counter_random.hpp"
#include "transport/simulated.hpp"

namespace sdr::experiment {
namespace {

using transport::Site;

constexpr std::uint16_t kOverhead = 44;  // IPv4, UDP and our header
constexpr std::uint64_t kRttsAhead = 6;  // of what is posted
constexpr std::uint64_t kSeldom = 100;   // wakings, of which one is so many times as late:
constexpr double kVeryLate = 10;

class SdrFlow final : public SharedFlow {
 public:
  SdrFlow(const FlowSpec& spec, const simulation::LinkSpec& link, const Place& place)
      : options_(spec.connection),
        size_(spec.size),
        write_(size_.count != 0 ? size_ : spec.write),
        wake_(spec.wake),
        wake_random_(place.seed, 1),
        network_({.link = {.mtu = link.mtu, .mtu_given = true}, .carry_payload = false, .packet_overhead = kOverhead}) {
    network_.share(place.forward, place.backward, place.further);
    QueuePairOptions& qp = options_.queue_pair;
    if (qp.mtu.count == 0) qp.mtu = {link.payload_within(kOverhead)};
    qp.max_message = std::min(qp.max_message, sdk::addressable(qp));
    qp.token = place.seed & ~std::uint64_t{1};  // the other end has the odd one
    // Never the posting of Writes, nor the receiver's memory, that the sender waits for.
    const std::uint64_t ahead = place.rate.bytes_in(place.longest_rtt).count * kRttsAhead;
    options_.posted_ahead = std::max(options_.posted_ahead, Bytes{ahead});
    outstanding_ =
        size_.count != 0 ? 1 : static_cast<std::uint32_t>(std::min<std::uint64_t>(2 + ahead / write_.count, 512));
  }

  Result<void> begin(TimePoint now) override {
    Result<ReservedMemory> memory = ReservedMemory::reserve(write_.count);
    if (!memory) return memory.error();
    memory_.emplace(std::move(memory).value());
    for (const Site site : {Site::A, Site::B}) {
      ConnectionOptions own = options_;
      own.queue_pair.token += site == Site::B ? 1 : 0;
      if (site == Site::B) own.path_rate.reset();
      DevicePtr device(&network_.device(site), [](transport::Device*) {});
      auto made = Connection::create(device, own);
      if (!made) return made.error();
      end(site).connection = std::move(made).value();
    }
    if (Result<void> met = a().connect(b().info()); !met) return met;
    if (Result<void> met = b().connect(a().info()); !met) return met;
    for (std::uint32_t i = 0; i < outstanding_ + (size_.count != 0 ? 0 : 1); ++i) {
      const auto posted = b().post_receive(memory_->bytes());
      if (!posted) return posted.error();
    }
    for (std::uint32_t i = 0; i < outstanding_; ++i) {
      const auto posted = a().post_write(memory_->bytes());
      if (!posted) return posted.error();
    }
    for (End& each : ends_) each.next = now;
    drive(now);
    return {};
  }

  void drive(TimePoint now) override {
    drive(Site::A, now);
    drive(Site::B, now);
    while (const auto done = b().poll_receive()) {
      if (done->error || size_.count != 0) continue;
      static_cast<void>(b().post_receive(memory_->bytes()));
      end(Site::B).next = now;
    }
    while (const auto done = a().poll_write()) {
      if (done->error) continue;
      if (size_.count != 0) {
        completed_ = done->at;
        continue;
      }
      static_cast<void>(a().post_write(memory_->bytes()));
      end(Site::A).next = now;
    }
  }

  [[nodiscard]] TimePoint due() const override {
    return std::min(ends_[0].awake != kNever ? ends_[0].awake : due(Site::A),
                    ends_[1].awake != kNever ? ends_[1].awake : due(Site::B));
  }
  [[nodiscard]] std::uint32_t number() const override { return network_.flow(Site::A); }
  [[nodiscard]] std::uint64_t payload() const override {
    const Connection* receiver = ends_[1].connection.get();
    return receiver == nullptr ? 0 : receiver->bytes_landed();
  }
  [[nodiscard]] TimePoint completed() const override { return completed_; }
  [[nodiscard]] Sender sender() const override {
    if (!ends_[0].connection) return {};
    const RateStatus rate = ends_[0].connection->statistics().rate;
    return {.pace = rate.pace.bits_per_second, .window = static_cast<double>(rate.window), .state = rate.state};
  }
  void finish(FlowResult& result) const override {
    if (!ends_[0].connection) return;
    const ConnectionStatistics statistics = ends_[0].connection->statistics();
    result.retransmitted = statistics.chunks_retransmitted;
    result.rate = statistics.rate;
    for (const End& each : ends_) {
      if (each.connection->failure() && !result.error) result.error = each.connection->failure();
    }
  }

 private:
  struct End {
    std::unique_ptr<Connection> connection;
    TimePoint next = kNever;
    bool asleep = true;
    TimePoint awake = kNever;  // when it will be, once something is due
  };

  End& end(Site site) { return ends_[static_cast<std::size_t>(site)]; }
  Connection& a() { return *end(Site::A).connection; }
  Connection& b() { return *end(Site::B).connection; }

  [[nodiscard]] TimePoint due(Site site) const {
    const End& own = ends_[static_cast<std::size_t>(site)];
    if (!own.connection || own.connection->failure()) return kNever;
    return std::min(own.next, network_.endpoint(site)->next_event());
  }
  void drive(Site site, TimePoint now) {
    if (now < due(site)) return;
    End& own = end(site);
    // Who wants to be called again at once does not go to sleep.
    if (wake_ > Duration::zero() && own.asleep) {
      if (own.awake == kNever) own.awake = now + lateness();
      if (now < own.awake) return;
      own.awake = kNever;
    }
    own.next = own.connection->progress(now);
    own.asleep = own.next > now;
  }
  [[nodiscard]] Duration lateness() {
    const std::uint64_t draw = wake_random_(wakings_++);
    const double uniform = (static_cast<double>(draw >> 11) + 1) * 0x1p-53;
    const double mean = static_cast<double>(wake_.count()) * (draw % kSeldom == 0 ? kVeryLate : 1);
    return Duration(static_cast<std::int64_t>(-std::log(uniform) * mean));
  }

  ConnectionOptions options_;
  Bytes size_;
  Bytes write_;
  Duration wake_;
  simulation::CounterRandom wake_random_;
  std::uint64_t wakings_ = 0;
  std::uint32_t outstanding_ = 1;
  transport::SimulatedNetwork network_;
  std::optional<ReservedMemory> memory_;
  std::array<End, 2> ends_;
  TimePoint completed_ = kNever;
};

}  // namespace

std::unique_ptr<SharedFlow> make_sdr_flow(const FlowSpec& spec, const simulation::LinkSpec& link,
                                          const SharedFlow::Place& place) {
  return std::make_unique<SdrFlow>(spec, link, place);
}

}  // namespace sdr::experiment
