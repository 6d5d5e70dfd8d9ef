// FixedRate: the rate of a leased line, which is nobody else's: always that, whatever is lost, and no window, so that
// it is never below the bandwidth-delay product. Source: the paper's assumption (section 2.2).
#pragma once

#include "reliability/rate_controller.hpp"

namespace sdr::reliability {

class FixedRate final : public RateController {
 public:
  // Zero: as fast as the transport takes it.
  explicit FixedRate(Bandwidth rate) : rate_(rate) {}

  void begin(Duration rtt, std::uint32_t /*packet_bytes*/, TimePoint /*now*/) override { rtt_min_ = rtt; }
  void reported(const RateSample& sample) override {
    if (sample.rtt > Duration::zero() && sample.rtt < rtt_min_) rtt_min_ = sample.rtt;
  }
  [[nodiscard]] Bandwidth pace() const override { return rate_; }
  [[nodiscard]] Bandwidth bandwidth() const override { return rate_; }
  [[nodiscard]] std::uint64_t window() const override { return UINT64_MAX; }
  void describe(RateStatus& status) const override {
    status.state = rate_.limited() ? "fixed" : "unlimited";
    status.rtt_min = rtt_min_;
  }

 private:
  Bandwidth rate_;
  Duration rtt_min_{0};
};

}  // namespace sdr::reliability
