// ProbeOrder: in which order the packets of a trial's flows are sent: `quantum` packets of flow 0, as many of flow 1,
// and so on, around and around. Sender and receiver know it both, so that a packet needs no second number to be found
// in the order of all.
//
// A plain value.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sdr::cli {

struct ProbeOrder {
  std::uint32_t flows = 1;
  std::uint32_t quantum = 1;

  struct Place {
    std::uint32_t flow = 0;
    std::uint32_t sequence = 0;

    friend bool operator==(const Place&, const Place&) = default;
  };

  [[nodiscard]] std::uint64_t round() const { return std::uint64_t{flows} * quantum; }
  // Of the n-th packet, from 0 on.
  [[nodiscard]] Place place(std::uint64_t n) const {
    const std::uint64_t within = n % round();
    return {.flow = static_cast<std::uint32_t>(within / quantum),
            .sequence = static_cast<std::uint32_t>(n / round() * quantum + within % quantum)};
  }
  // How many of the first `total` packets are of `flow`.
  [[nodiscard]] std::uint32_t count(std::uint32_t flow, std::uint64_t total) const {
    const std::uint64_t rest = total % round();
    const std::uint64_t before = std::uint64_t{flow} * quantum;
    const std::uint64_t of_rest = rest > before ? std::min<std::uint64_t>(rest - before, quantum) : 0;
    return static_cast<std::uint32_t>(total / round() * quantum + of_rest);
  }
};

}  // namespace sdr::cli
