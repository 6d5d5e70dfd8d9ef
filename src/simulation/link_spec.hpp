// LinkSpec: what a link between two sites is like, as a person writes it:
//
//   rtt=25ms,rate=1Gbit,loss=1e-3,burst=4,reorder=1e-3,dup=1e-4,jitter=100us,queue=10ms,seed=7,mtu=1500
//   lossback=0,losssize=1024,outage=1s+200ms/5s+50ms,trace=1000:2:350:1
//
// Every key is optional; the text prints back to an equal spec. It describes both directions alike but for `lossback`:
// each one delays by half the RTT, has the whole rate, and draws its own losses from the seed. link_model.hpp says what
// the numbers do.
//
// A plain value without threads or invariants beyond its ranges, which parse() checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::simulation {

// A time in which everything is lost, counted from the first packet of its direction.
struct Outage {
  Duration begin{0};
  Duration length{0};

  friend bool operator==(const Outage&, const Outage&) = default;
};

// So many packets arrive, and so many behind them are lost.
struct LossRun {
  std::uint64_t arrived = 0;
  std::uint64_t lost = 0;

  friend bool operator==(const LossRun&, const LossRun&) = default;
};

struct LinkSpec {
  Duration rtt{0};                  // propagation, there and back
  Bandwidth rate;                   // of each direction; not limited by default
  double loss = 0;                  // mean share of packets lost on the path, 0 to 1
  std::optional<double> loss_back;  // of the way back, on which a sender's acknowledgements come; as `loss` by default
  double burst = 1;                 // mean length of a run of losses in packets; 1 means independent losses
  double reorder = 0;               // share of packets that fall behind later ones
  double duplicate = 0;             // share of packets that arrive twice
  Duration jitter{0};               // the one-way delay wanders between nothing and this above its base, order kept
  Duration queue{std::chrono::milliseconds(10)};  // longest wait for the rate before a packet is dropped
  std::uint64_t seed = 1;
  std::uint16_t mtu = 1500;     // IP MTU of the path
  bool mtu_given = false;       // the text named it: larger packets are refused, instead of being nobody's business
  std::uint32_t loss_size = 0;  // `loss` is that of packets of so many bytes on the wire; 0: of all alike
  std::vector<Outage> outages;  // at most kMostOutages
  std::vector<LossRun> trace;   // recorded losses, from the first packet on, over and over; beside `loss`
  static constexpr std::size_t kMostOutages = 64;

  // InvalidArgument names the key, the value and the range.
  static Result<LinkSpec> parse(std::string_view text);

  // The same link as packets of the way back find it.
  [[nodiscard]] LinkSpec backward() const;

  // How likely a packet of so many bytes on the wire is lost, in the mean.
  [[nodiscard]] double loss_of(std::uint32_t wire_bytes) const;

  // How far a reordered packet or a duplicate falls behind at most: a sixteenth of the RTT, or the time of 16 packets
  // at the rate, or 10 us, whichever is longest (so that it falls behind something on any link that is busy).
  [[nodiscard]] Duration reorder_window() const;

  // The largest packet payload (multiple of 8) that the MTU carries beside `overhead` bytes of headers.
  [[nodiscard]] std::uint16_t payload_within(std::uint16_t overhead) const {
    return overhead >= mtu ? std::uint16_t{0} : static_cast<std::uint16_t>((mtu - overhead) & ~7);
  }

  friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

// The text form; keys at their default are left out, but for rtt.
std::string to_string(const LinkSpec& spec);

}  // namespace sdr::simulation
