// LossTally: the losses of one submessage, added one by one: does it still decode?
//
// MDS: any m losses do. XOR: one a group, data shard j and parity shard j mod m being of group j mod m.
//
// Used by the Monte Carlo for one submessage at a time; a plain value.
#pragma once

#include <bitset>
#include <cstdint>

#include "model/scheme.hpp"

namespace sdr::model {

class LossTally {
 public:
  LossTally(SchemeKind code, unsigned k, unsigned m) : xor_(code == SchemeKind::EcXor), k_(k), m_(m) {}

  // Shard 0 to k - 1 are data, k to k + m - 1 parity.
  void lose(unsigned shard) {
    ++lost_;
    if (!xor_) return;
    const unsigned group = (shard < k_ ? shard : shard - k_) % m_;
    lost_twice_ = lost_twice_ || hit_.test(group);
    hit_.set(group);
  }

  [[nodiscard]] bool decodes() const { return xor_ ? !lost_twice_ : lost_ <= m_; }

 private:
  bool xor_;
  unsigned k_;
  unsigned m_;
  unsigned lost_ = 0;
  bool lost_twice_ = false;
  std::bitset<256> hit_;
};

}  // namespace sdr::model
