// Checksums: SHA-256 over a whole file, and short sums of its pieces by which two ends compare what they hold.
//
// Sha256 is what sha256sum prints. A sum is the first eight bytes of the SHA-256 of one unit: enough to tell pieces
// apart that differ by accident, and what it misses the digest of the whole file finds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdr/result.hpp"

namespace sdr::cli {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // The digest; afterwards this is as new.
  std::array<std::byte, 32> finish();
  // The same in 64 hexadecimal digits.
  std::string finish_hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

using Sum = std::uint64_t;

// One sum for each `unit` bytes; the last unit may be short.
std::vector<Sum> sums_of(std::span<const std::byte> bytes, std::size_t unit);

// Sixteen hexadecimal digits a sum.
std::string to_hex(std::span<const Sum> sums);
Result<std::vector<Sum>> parse_sums(std::string_view text);

}  // namespace sdr::cli
