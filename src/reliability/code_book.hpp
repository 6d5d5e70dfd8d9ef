// CodeBook: the Reed-Solomon codes that a connection has use for at the moment.
//
// A code is its tables, which take longer to make than a small submessage takes to encode. The adaptive scheme changes
// its code with the loss that it sees and with the size of a Write: the few last used stay.
// One thread; a code that was handed out outlives its place here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "coding/code.hpp"

namespace sdr::reliability {

class CodeBook {
 public:
  static constexpr std::size_t kMost = 8;

  // Nothing when there is no such code, or no memory for its tables.
  [[nodiscard]] std::optional<coding::ErasureCode> find(std::uint32_t k, std::uint32_t m) {
    const coding::CodeShape shape{coding::CodeKind::ReedSolomon, k, m};
    const auto known = std::find_if(codes_.begin(), codes_.end(),
                                    [&shape](const coding::ErasureCode& code) { return code.shape() == shape; });
    if (known != codes_.end()) {
      std::rotate(codes_.begin(), known, known + 1);  // the last used in front
      return codes_.front();
    }
    const Result<coding::ErasureCode> made = coding::ErasureCode::create(shape);
    if (!made) return std::nullopt;
    if (codes_.size() == kMost) codes_.pop_back();
    codes_.insert(codes_.begin(), *made);
    return codes_.front();
  }

 private:
  std::vector<coding::ErasureCode> codes_;
};

}  // namespace sdr::reliability
