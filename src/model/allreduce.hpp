// Allreduce over N datacenters, each message a reliable Write: the bound and the Monte Carlo (paper section 5.3,
// appendix C).
//
//   ring   2N - 2 rounds, each moves buffer / N bytes to the next datacenter:
//          T(i, 0) = 0, T(i, r) = max(T(i - 1, r - 1), T(i, r - 1)) + C + X(i, r - 1);  done at max_i T(i, 2N - 2)
//   tree   binomial: h = ceil(log2 N) rounds up, h rounds down, each moves the whole buffer. In round r up, datacenter
//          i, a multiple of 2^(r + 1), takes from i + 2^r:  T(i) = max(T(i), T(i + 2^r)) + C + X. Down the same pairs
//          in the reverse order:  T(i) = T(i + 2^r) = T(i) + C + X, so that a datacenter sends one message at a time.
//
// X is a completion time, C the computation of a round. A datacenter takes part in every round of a ring, and the root
// in every round of a tree, so rounds * (C + E[X]) is a lower bound of the mean.
#pragma once

#include <cstdint>

#include "model/samples.hpp"

namespace sdr::model {

enum class Topology : std::uint8_t { Ring, Tree };

struct AllreduceSpec {
  Topology topology = Topology::Ring;
  std::uint32_t datacenters = 4;  // N
  Bytes buffer;                   // reduced
  Duration compute{0};            // C
};

class Allreduce {
 public:
  // InvalidArgument names the field, the value and the range.
  static Result<Allreduce> create(const PathSpec& path, const SchemeSpec& scheme, const AllreduceSpec& spec);

  [[nodiscard]] std::uint32_t rounds() const;
  // rounds * (C + M T_inj + RTT), M of a round's message.
  [[nodiscard]] Duration lossless() const;
  // rounds * (C + E[X]).
  [[nodiscard]] Duration bound() const;
  [[nodiscard]] Result<Samples> samples(const SampleOptions& options) const;
  // A round's message.
  [[nodiscard]] const Transfer& message() const { return message_; }

 private:
  Allreduce(const Transfer& message, const SchemeSpec& scheme, const AllreduceSpec& spec, Duration mean)
      : message_(message), scheme_(scheme), spec_(spec), mean_(mean) {}
  double ring(const Sampler& sampler, Draws& draws) const;
  double tree(const Sampler& sampler, Draws& draws) const;

  Transfer message_;
  SchemeSpec scheme_;
  AllreduceSpec spec_;
  Duration mean_;  // E[X]
};

}  // namespace sdr::model
