// SchemeSpec: a reliability scheme and its parameters, as the theory knows them.
//
// A plain value; check() says whether the theory has an answer for it. Source: paper sections 4.2 and 5.2.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/transfer.hpp"
#include "sdr/result.hpp"

namespace sdr::model {

enum class SchemeKind : std::uint8_t {
  SrRto,     // selective repeat: a chunk is sent again RTO after it was sent, if lost
  SrNack,    // selective repeat: the receiver names what is missing, 1 RTT
  EcXor,     // erasure coding, XOR parity
  EcRs,      // erasure coding, a maximum distance separable code such as Reed-Solomon
  Adaptive,  // selective repeat, and just enough parity for the last round trip (adaptive_tail.hpp); not the paper's
};
// "sr-rto", "sr-nack", "ec-xor", "ec-rs", "adaptive".
std::string_view to_string(SchemeKind kind);

struct SchemeSpec {
  SchemeKind kind = SchemeKind::SrRto;
  unsigned data_chunks = 32;    // k
  unsigned parity_chunks = 8;   // m
  double rto_rtts = 3;          // RTO of SrRto and of the selective repeat that coded schemes fall back to
  double fallback_beta = 0.5;   // what the fallback timeout waits beyond the last parity chunk, in RTTs
  bool interleaved = true;      // neighbours in a submessage are as many chunks apart as there are submessages
  double repair_target = 1e-5;  // of Adaptive: chance that its parity does not suffice
  double max_overhead = 1;      // of Adaptive: parity chunks per chunk of the tail

  [[nodiscard]] bool coded() const { return kind == SchemeKind::EcXor || kind == SchemeKind::EcRs; }
  // O = RTO + T_inj: from one transmission of a chunk to the next.
  [[nodiscard]] double period(const Transfer& transfer) const {
    return (kind == SchemeKind::SrNack ? 1 : rto_rtts) * transfer.rtt() + transfer.injection();
  }
};

// InvalidArgument names the field, the value and the range. k and m are looked at only in coded schemes.
Result<void> check(const SchemeSpec& scheme);

}  // namespace sdr::model
