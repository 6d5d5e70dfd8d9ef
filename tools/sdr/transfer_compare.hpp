// Resuming: what a receiver holds of a file is told by comparing sums of it with the source.
//
// Three rounds. The receiver sums what it has in units of 1 MiB; the sender compares and asks again, in units of 16 KiB
// and then of 512 B, about the units that differ, which are mostly those that were arriving when the last run ended. So
// all but the edges of lost packets counts of what had arrived, and the source need not be believed to be the same:
// what has changed differs. Of a file that differs in much more than was under way, the last round is left out.
//
// Values only; the sums are computed on whichever thread asks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sdr/file_digest.hpp"
#include "sdr/file_manifest.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/transfer_ranges.hpp"

namespace sdr::cli {

inline constexpr std::size_t kCoarseUnit = std::size_t{1} << 20;
inline constexpr std::size_t kFineUnit = std::size_t{16} << 10;
inline constexpr std::size_t kFinestUnit = 512;
inline constexpr std::array kUnits{kCoarseUnit, kFineUnit, kFinestUnit};
inline constexpr std::uint64_t kMostInFinestUnits = 64U << 20;
inline constexpr std::size_t kUnitsPerPage = 256;

// Sums of consecutive units of one file, from `offset` on.
struct SumPage {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::size_t unit = kCoarseUnit;
  std::vector<Sum> sums;
};

// The pages that cover `ranges`, whose begins are multiples of `unit`; the sums are still missing.
[[nodiscard]] std::vector<Range> pages_of(const Ranges& ranges, std::size_t unit);
[[nodiscard]] SumPage sum_page(std::uint32_t file, std::span<const std::byte> content, Range range, std::size_t unit);

[[nodiscard]] Json to_json(const SumPage& page);
// Protocol when the page is malformed, or reaches past the end of its file.
Result<SumPage> parse_sum_page(const Json& frame, std::span<const FileEntry> entries);

// The units of the page that `source` has as well. What lies past the end of `source` is not equal.
[[nodiscard]] Ranges equal_units(const SumPage& page, std::span<const std::byte> source);

// The units of the page that are not among `equal` though something is in them: what is all zeros has not arrived.
[[nodiscard]] Ranges differing_units(const SumPage& page, const Ranges& equal, std::uint64_t size);

[[nodiscard]] Json to_json(const Ranges& ranges);
// Protocol unless these are ascending, disjoint ranges within [0, size).
Result<Ranges> parse_ranges(const Json& list, std::uint64_t size);

}  // namespace sdr::cli
