// TransferShape: what both directions of a connection agree on: the scheme, its code, and how transfers are cut.
//
// A plain value, the same for the life of a connection; the code is the connection's.
#pragma once

#include <cstdint>

#include "coding/code.hpp"
#include "reliability/scheme.hpp"

namespace sdr::reliability {

struct TransferShape {
  SchemeRules rules;
  const coding::ErasureCode* code = nullptr;  // null without parity
  std::uint64_t transfer_bytes = 0;           // the largest transfer
  std::uint64_t transfer_chunks = 0;
  std::uint32_t chunk_bytes = 0;
  std::uint32_t packets_per_chunk = 0;
  bool carries_payload = true;  // of the transport

  [[nodiscard]] std::uint64_t transfers_of(std::uint64_t bytes) const {
    return bytes <= transfer_bytes ? 1 : (bytes + transfer_bytes - 1) / transfer_bytes;
  }
  [[nodiscard]] std::uint64_t parity_bytes(std::uint64_t data_bytes) const {
    if (code == nullptr) return 0;
    const std::uint64_t chunks = (data_bytes + chunk_bytes - 1) / chunk_bytes;
    const std::uint64_t submessages = (chunks + code->shape().k - 1) / code->shape().k;
    return submessages * code->shape().m * chunk_bytes;
  }
};

}  // namespace sdr::reliability
