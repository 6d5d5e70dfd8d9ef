// CodingLayout: which chunk of a transfer belongs to which submessage, and where parity chunks lie (paper
// section 4.1.2).
//
// The chunks from `first` on are coded: all of a transfer in the schemes of the paper, its tail in the adaptive one.
// They form L submessages, interleaved: coded chunk c is data shard c / L of submessage c mod L. Two chunks of one
// submessage are L chunks apart on the wire, so a burst of losses is spread over as many submessages as it is long.
// Submessages differ by at most one chunk in size, all have at most k. Parity chunk q of the parity message is parity
// shard q / L of submessage q mod L: the parity of all submessages is interleaved in the same way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "coding/code.hpp"

namespace sdr::reliability {

struct CodingLayout {
  std::uint32_t first = 0;        // the first coded chunk
  std::uint32_t coded = 0;        // how many there are: up to the transfer's last
  std::uint32_t submessages = 0;  // L
  std::uint32_t parity_each = 0;  // parity shards of every submessage

  CodingLayout() = default;
  // All of `chunks`, in ceil(chunks / k) submessages.
  CodingLayout(std::uint32_t chunks, const coding::CodeShape& shape)
      : coded(chunks),
        submessages((chunks + shape.k - 1) / shape.k),
        parity_each(parity_count(chunks, submessages, shape)) {}
  // Those from `first_coded` on, as planned.
  CodingLayout(std::uint32_t chunks, std::uint32_t first_coded, std::uint32_t in_submessages, std::uint32_t parity)
      : first(first_coded), coded(chunks - first_coded), submessages(in_submessages), parity_each(parity) {
    if (submessages == 0 || parity_each == 0 || coded == 0) *this = uncoded(chunks);
  }
  static CodingLayout uncoded(std::uint32_t chunks) {
    CodingLayout layout;
    layout.first = chunks;
    return layout;
  }

  [[nodiscard]] bool covers(std::uint32_t chunk) const { return chunk >= first; }
  [[nodiscard]] std::uint32_t chunks() const { return first + coded; }
  // Of a chunk that is covered.
  [[nodiscard]] std::uint32_t submessage_of(std::uint32_t chunk) const { return (chunk - first) % submessages; }
  [[nodiscard]] std::uint32_t shard_of(std::uint32_t chunk) const { return (chunk - first) / submessages; }
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t submessage, std::uint32_t shard) const {
    return first + shard * submessages + submessage;
  }
  [[nodiscard]] std::uint32_t parity_at(std::uint32_t submessage, std::uint32_t shard) const {
    return shard * submessages + submessage;
  }
  [[nodiscard]] std::uint32_t data_shards(std::uint32_t submessage) const {
    return submessage >= coded ? 0 : (coded - submessage + submessages - 1) / submessages;
  }
  [[nodiscard]] std::uint32_t longest() const { return submessages == 0 ? 0 : data_shards(0); }
  [[nodiscard]] std::uint32_t parity_chunks() const { return submessages * parity_each; }
  // Whether the transfer's last chunk, which may be short, is in this submessage (it is then its last data shard).
  [[nodiscard]] bool holds_last_chunk(std::uint32_t submessage) const {
    return coded != 0 && submessage_of(chunks() - 1) == submessage;
  }

  friend bool operator==(const CodingLayout&, const CodingLayout&) = default;

 private:
  // XOR parity of a group without data protects nothing.
  static std::uint32_t parity_count(std::uint32_t chunks, std::uint32_t submessages, const coding::CodeShape& shape) {
    if (submessages == 0) return 0;
    const std::uint32_t longest = (chunks + submessages - 1) / submessages;
    return shape.kind == coding::CodeKind::Xor ? std::min(shape.m, longest) : shape.m;
  }
};

}  // namespace sdr::reliability
