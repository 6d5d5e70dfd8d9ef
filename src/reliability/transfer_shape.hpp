// TransferShape: what both directions of a connection agree on: the scheme, its code, and how transfers are cut.
//
// A plain value, the same for the life of a connection; the code is the connection's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "coding/code.hpp"
#include "coding/parity_budget.hpp"
#include "reliability/scheme.hpp"

namespace sdr::reliability {

struct TransferShape {
  SchemeRules rules;
  const coding::ErasureCode* code = nullptr;  // of the schemes with one code for all
  std::uint64_t transfer_bytes = 0;           // the largest transfer
  std::uint64_t transfer_chunks = 0;
  std::uint32_t chunk_bytes = 0;
  std::uint32_t packets_per_chunk = 0;
  bool carries_payload = true;  // of the transport
  double repair_target = 1e-5;  // adaptive: P(a second round) that parity and covers leave
  double max_overhead = 1;      // adaptive: parity chunks for each data chunk of the tail

  [[nodiscard]] std::uint64_t transfers_of(std::uint64_t bytes) const {
    return bytes <= transfer_bytes ? 1 : (bytes + transfer_bytes - 1) / transfer_bytes;
  }
  [[nodiscard]] std::uint32_t chunks_of(std::uint64_t bytes) const {
    return static_cast<std::uint32_t>((bytes + chunk_bytes - 1) / chunk_bytes);
  }
  // Room for parity beside a receive of so many bytes: the most that its sender may send.
  [[nodiscard]] std::uint64_t parity_bytes(std::uint64_t data_bytes) const {
    if (!rules.coded()) return 0;
    const std::uint64_t chunks = chunks_of(data_bytes);
    if (rules.adaptive()) return adaptive_parity_most(chunks) * chunk_bytes;
    const std::uint64_t submessages = (chunks + code->shape().k - 1) / code->shape().k;
    return submessages * code->shape().m * chunk_bytes;
  }
  [[nodiscard]] std::uint64_t adaptive_parity_most(std::uint64_t data_chunks) const {
    return std::min(coding::parity_room(data_chunks), transfer_bytes / chunk_bytes);
  }
};

}  // namespace sdr::reliability
