// Planner: which scheme, with which parameters, for a message on a path, and at what price.
//
// Every scheme is assessed as this library runs it, which differs from the paper's in two ways: coded schemes fall back
// to the receiver's word (1 RTT, as sr-nack), and a message is cut into ceil(M / k) submessages of nearly equal size
// with m parity chunks each. Where the theory's mean lies below the floor (long messages), the floor is taken.
//
// Coded schemes come with (32, 8) and tuned: k from 8 to 223 and m within the budget. Of all shapes whose p99.9 is
// within kAlike of the least, the one with the least mean: without that tolerance it would be the one that only just
// keeps the fallback out of the p99.9, and fails for a little more loss. The best scheme is picked by p99.9, then the
// mean, then the bytes on the wire, where what differs by less than kSame is equal: nobody should pay parity for
// nanoseconds.
//
// Pure functions and plain values; any thread. Source: paper sections 4.2, 5.2.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/completion_time.hpp"
#include "model/scheme.hpp"
#include "model/transfer.hpp"

namespace sdr::model {

// Data that one core makes parity for in a second. Zero: not known.
using EncodeSpeed = std::function<Bandwidth(const SchemeSpec& scheme)>;

struct PlannedScheme {
  SchemeSpec scheme;
  bool tuned = false;
  Summary time;
  double slowdown = 1;             // mean, in lossless times
  double parity = 0;               // parity bytes per byte of the message
  double repairs = 0;              // expected bytes sent again per byte of the message; in runs of losses, at most
  double fallback = 0;             // P(parity does not suffice)
  std::optional<double> holds_to;  // coded: the loss of packets up to which that is less than kRare
  Bandwidth encode;                // of one core; zero: not known, or nothing to encode
  double cores = 0;                // that keep up with the rate
  bool within_budget = true;       // always so of selective repeat: what it sends again has to be sent again
  bool at_floor = false;           // the theory's figures were below the floor

  [[nodiscard]] double overhead() const { return parity + repairs; }
};

struct Plan {
  Transfer transfer;
  Bandwidth rate;
  double budget = 0;
  std::vector<PlannedScheme> schemes;  // sr-rto, sr-nack, ec-xor and ec-rs, each (32, 8) and tuned, then adaptive
  std::vector<SchemeKind> untunable;   // coded schemes of which no k:m keeps to the budget
  std::size_t best = 0;                // of schemes
};

inline constexpr double kAlike = 0.005;  // share by which p99.9 of shapes may differ and still count as equal
inline constexpr double kSame = 0.01;    // the same of schemes, for their means as well
inline constexpr double kRare = 0.001;   // a fallback in fewer Writes than this is not seen at p99.9
inline constexpr unsigned kLeastTunedK = 8;
inline constexpr unsigned kMostTunedK = 223;  // 32 parity chunks fit beside it

// `budget` is the share of bytes beyond the message that may be sent, 0 to 1. InvalidArgument names the field, the
// value and the range.
Result<Plan> plan(const PathSpec& path, Bytes message, double budget, const EncodeSpeed& encode_speed);

// The tuned shape; nothing when none keeps to the budget.
std::optional<SchemeSpec> tune(SchemeKind code, const Transfer& transfer, double budget);

// The best of those within their budget: least p99.9, then mean, then overhead in whole percent, then sr-nack before
// adaptive before all others. At
// least one must be within its budget.
std::size_t choose(const std::vector<PlannedScheme>& schemes);

// "sr-nack", "ec-rs:32:8": as the command line takes it.
std::string to_text(const SchemeSpec& scheme);

// Why the best scheme is the best: one sentence without a full stop.
std::string reason(const Plan& plan);

}  // namespace sdr::model
