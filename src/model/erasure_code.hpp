// Whether a submessage decodes, and how a message is cut into submessages (paper section 4.2.2, appendix B).
//
//   P_MDS(k, m) = sum_{i = 0..m} C(k + m, i) p^i (1 - p)^(k + m - i)
//   P_XOR(k, m) = [(1 - p)^n + n p (1 - p)^(n - 1)]^m,  n = k / m + 1
//
// Functions give the chance of failure, which is often far too small to be seen as the difference of 1 and a success.
//
// Pure functions and plain values; any thread.
#pragma once

#include <cstdint>

#include "model/loss.hpp"
#include "model/scheme.hpp"

namespace sdr::model {

// 1 - P_MDS(k, m), independent losses.
double mds_failure(unsigned k, unsigned m, double p);
// 1 - P_XOR(k, m), independent losses. Where m does not divide k (a short last submessage) groups differ by one chunk.
double xor_failure(unsigned k, unsigned m, double p);

// The same on a path with any losses, `spacing` chunks between neighbours of the submessage on the wire. The data
// chunks are one sequence, the parity chunks another one, much later. In runs of losses, XOR with m > 12 takes the
// groups as independent, which is pessimistic: one run that hits all groups counts for each.
double submessage_failure(SchemeKind code, unsigned k, unsigned m, const ChunkLoss& loss, std::uint64_t spacing);

// M chunks as submessages of k, with ceil(M m / k) parity chunks. The last one is short when k does not divide M.
struct CodedMessage {
  CodedMessage(std::uint64_t chunks, const SchemeSpec& scheme);

  std::uint64_t chunks;  // M
  std::uint64_t whole;   // submessages of k + m
  std::uint32_t k;
  std::uint32_t m;
  std::uint32_t last_k = 0;  // data and parity chunks of the short one; 0: there is none
  std::uint32_t last_m = 0;

  [[nodiscard]] std::uint64_t submessages() const { return whole + (last_k > 0 ? 1 : 0); }  // L
  [[nodiscard]] std::uint64_t parity_chunks() const { return whole * m + last_m; }
};

// How likely each of them fails.
//
// In runs of losses, interleaved submessages fail together: a run hits neighbours alike. Those that fail come in runs
// themselves, whose mean length is taken from how long all the losses that a failure takes go on together.
struct SubmessageFailure {
  SubmessageFailure(const CodedMessage& message, const SchemeSpec& scheme, const ChunkLoss& loss);

  double whole = 0;
  double last = 0;  // of the short one
  double run = 1;   // of whole ones that fail; 1: each by itself

  // Runs of failures among whole submessages are taken as binomial with this chance each.
  [[nodiscard]] double run_begins() const { return whole / run; }
};

// P_fallback = 1 - P^L (paper section 4.2.2), the short submessage included.
double fallback_chance(const CodedMessage& message, const SubmessageFailure& failure);

}  // namespace sdr::model
