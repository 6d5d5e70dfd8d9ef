// How fast one core of this machine makes parity: a short measurement through src/coding, on data that comes from
// memory as in a transfer.
//
// Keeps what it has measured. One thread.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "model/scheme.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

class EncodeSpeedometer {
 public:
  explicit EncodeSpeedometer(Bytes chunk);

  // Of data, not of parity. Zero when the code cannot be had.
  Bandwidth operator()(const model::SchemeSpec& scheme);

 private:
  struct Key {
    model::SchemeKind kind;
    unsigned k;
    unsigned m;
    auto operator<=>(const Key&) const = default;
  };
  Bandwidth measure(const Key& key);

  std::size_t shard_;
  std::vector<std::byte> memory_;
  std::map<Key, Bandwidth> measured_;
};

}  // namespace sdr::cli
