// CodingLayout: which chunk of a transfer belongs to which submessage, and where parity chunks lie (paper
// section 4.1.2).
//
// C data chunks form L = ceil(C / k) submessages, interleaved: chunk c is data shard c / L of submessage c mod L. Two
// chunks of one submessage are L chunks apart on the wire, so a burst of losses is spread over as many submessages as
// it is long. Submessages differ by at most one chunk in size, all have at most k. Parity chunk q of the parity message
// is parity shard q / L of submessage q mod L: the parity of all submessages is interleaved in the same way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "coding/code.hpp"

namespace sdr::reliability {

struct CodingLayout {
  std::uint32_t chunks = 0;       // C
  std::uint32_t submessages = 0;  // L
  std::uint32_t parity_each = 0;  // parity shards of every submessage

  CodingLayout() = default;
  CodingLayout(std::uint32_t data_chunks, const coding::CodeShape& shape)
      : chunks(data_chunks),
        submessages((data_chunks + shape.k - 1) / shape.k),
        parity_each(parity_count(data_chunks, submessages, shape)) {}

  [[nodiscard]] std::uint32_t submessage_of(std::uint32_t chunk) const { return chunk % submessages; }
  [[nodiscard]] std::uint32_t shard_of(std::uint32_t chunk) const { return chunk / submessages; }
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t submessage, std::uint32_t shard) const {
    return shard * submessages + submessage;
  }
  [[nodiscard]] std::uint32_t data_shards(std::uint32_t submessage) const {
    return submessage >= chunks ? 0 : (chunks - submessage + submessages - 1) / submessages;
  }
  [[nodiscard]] std::uint32_t parity_chunks() const { return submessages * parity_each; }
  // Whether the transfer's last chunk, which may be short, is in this submessage (it is then its last data shard).
  [[nodiscard]] bool holds_last_chunk(std::uint32_t submessage) const {
    return chunks != 0 && submessage_of(chunks - 1) == submessage;
  }

 private:
  // XOR parity of a group without data protects nothing.
  static std::uint32_t parity_count(std::uint32_t chunks, std::uint32_t submessages, const coding::CodeShape& shape) {
    if (submessages == 0) return 0;
    const std::uint32_t longest = (chunks + submessages - 1) / submessages;
    return shape.kind == coding::CodeKind::Xor ? std::min(shape.m, longest) : shape.m;
  }
};

}  // namespace sdr::reliability
