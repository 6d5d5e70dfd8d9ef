// SchemeRules: what the chosen scheme means for a sender and a receiver, in one place.
//
// The state machines ask these questions instead of switching on the scheme's name.
#pragma once

#include "sdr/connection.hpp"

namespace sdr::reliability {

struct SchemeRules {
  Scheme scheme = Scheme::SrNack;

  // Parity chunks travel in a second message beside the data.
  [[nodiscard]] bool coded() const { return scheme == Scheme::EcXor || scheme == Scheme::EcRs || adaptive(); }
  // Each transfer has a code of its own, for its tail, made for the loss that has been seen.
  [[nodiscard]] bool adaptive() const { return scheme == Scheme::Adaptive; }
  // SDK messages of a transfer.
  [[nodiscard]] std::uint32_t messages_each() const { return coded() ? 2 : 1; }
  // The receiver names a gap as soon as later chunks show it. Coded chunks wait for their parity first.
  [[nodiscard]] bool names_gaps_early() const { return scheme == Scheme::SrNack || adaptive(); }
  // A report that lists a chunk as missing is a reason to send it again; otherwise only the timeout is.
  [[nodiscard]] bool resends_on_report() const { return scheme != Scheme::SrRto; }
};

}  // namespace sdr::reliability
