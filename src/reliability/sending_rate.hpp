// SendingRate: how fast one connection may send, and who decides it: nobody (a given rate, or a path within the
// machine), or the controller of the path, whose pace and window it hands to the QueuePair.
//
// Threads: as the connection's. Without a controller every call is a look at a pointer.
#pragma once

#include <memory>
#include <optional>

#include "reliability/control_message.hpp"
#include "reliability/rate_group.hpp"
#include "reliability/rtt_estimator.hpp"
#include "sdr/connection.hpp"

namespace sdr::reliability {

class SendingRate {
 public:
  SendingRate(const ConnectionOptions& options, QueuePair& queue_pair);

  // Whether packets are to be sent as ECN-capable: there will be a controller, unless the path is within the machine.
  static bool heeds_marks(const ConnectionOptions& options);
  // Once the peer is known: with it whether the path leaves the machine.
  void connected();
  [[nodiscard]] bool controlled() const { return member_ != nullptr; }

  // Before anything is injected: what may be sent from now on.
  void adjust(const RttEstimator& rtt, TimePoint now);
  // After: whether more waits to be sent.
  void note_waiting(bool waits) { waits_ = waits; }
  // Payload to be kept waiting in the QueuePair, and in pieces of which size (0: whatever fills it up exactly).
  [[nodiscard]] std::uint64_t backlog() const;
  [[nodiscard]] std::uint32_t piece() const;
  // Offers may take a hundredth of a rate that was found.
  [[nodiscard]] Duration offers_apart() const { return path_rate_.time_for({kOfferBytes * 100}); }
  // Of the path; zero: the QueuePair's.
  [[nodiscard]] Bandwidth path_rate() const { return path_rate_; }
  [[nodiscard]] bool congested() const { return member_ != nullptr && member_->congested(); }

  void sent_control(std::size_t bytes);
  void offered(TimePoint now);
  // `silence`: for how long nothing had been heard before, `silent_after`: from when on no data is sent.
  void reported(const ReportsHeader& header, Duration silence, Duration silent_after, TimePoint now);
  // When the peer is to be asked what has landed.
  [[nodiscard]] TimePoint question_at(TimePoint now) const;
  [[nodiscard]] TimePoint next_timeout() const;
  [[nodiscard]] RateStatus status() const;

 private:
  static constexpr std::uint64_t kOfferBytes = 110;  // with one offer, on the wire

  [[nodiscard]] RateMember::Sent sent() const;

  QueuePair& queue_pair_;
  RateMode mode_;
  Bandwidth most_;
  std::uint64_t seed_;
  std::shared_ptr<PathRate> path_;
  std::unique_ptr<RateMember> member_;
  Duration rtt_{0};
  Bandwidth path_rate_{};
  bool waits_ = false;
};

}  // namespace sdr::reliability
