#include "sdr/transfer_compare.hpp"

#include <algorithm>

namespace sdr::cli {

namespace {

Error malformed(const char* what) {
  return {ErrorCode::Protocol, std::string("the peer sent malformed ") + what};
}

bool is_count(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object.at(key).is_number_unsigned();
}

}  // namespace

std::vector<Range> pages_of(const Ranges& ranges, std::size_t unit) {
  std::vector<Range> pages;
  const std::uint64_t most = std::uint64_t{unit} * kUnitsPerPage;
  for (const Range& r : ranges) {
    for (std::uint64_t at = r.offset; at < r.end(); at += most) pages.push_back({at, std::min(most, r.end() - at)});
  }
  return pages;
}

SumPage sum_page(std::uint32_t file, std::span<const std::byte> content, Range range, std::size_t unit) {
  return {file, range.offset, unit, sums_of(content.subspan(range.offset, range.length), unit)};
}

Json to_json(const SumPage& page) {
  return {{"file", page.file}, {"offset", page.offset}, {"unit", page.unit}, {"sums", to_hex(page.sums)}};
}

Result<SumPage> parse_sum_page(const Json& frame, std::span<const FileEntry> entries) {
  if (!is_count(frame, "file") || !is_count(frame, "offset") || !is_count(frame, "unit") || !frame.contains("sums") ||
      !frame.at("sums").is_string()) {
    return malformed("checksums");
  }
  const auto file = frame.at("file").get<std::uint64_t>();
  SumPage page{.offset = frame.at("offset").get<std::uint64_t>(), .unit = frame.at("unit").get<std::size_t>()};
  Result<std::vector<Sum>> sums = parse_sums(frame.at("sums").get_ref<const std::string&>());
  if (!sums) return sums.error();
  page.sums = std::move(*sums);
  if (file >= entries.size() || std::find(kUnits.begin(), kUnits.end(), page.unit) == kUnits.end() ||
      page.sums.size() > kUnitsPerPage || page.offset % page.unit != 0) {
    return malformed("checksums");
  }
  page.file = static_cast<std::uint32_t>(file);
  const std::uint64_t size = entries[page.file].size;
  const std::uint64_t units = size / page.unit + (size % page.unit != 0 ? 1 : 0);
  if (page.offset > size || page.sums.size() > units - page.offset / page.unit) return malformed("checksums");
  return page;
}

Ranges equal_units(const SumPage& page, std::span<const std::byte> source) {
  Ranges equal;
  for (std::size_t i = 0; i < page.sums.size(); ++i) {
    const std::uint64_t at = page.offset + i * page.unit;
    if (at >= source.size()) break;
    const std::uint64_t length = std::min<std::uint64_t>(page.unit, source.size() - at);
    if (sums_of(source.subspan(at, length), page.unit).front() == page.sums[i]) equal.add({at, length});
  }
  return equal;
}

Ranges differing_units(const SumPage& page, const Ranges& equal, std::uint64_t size) {
  const std::vector<std::byte> zeros(page.unit);
  const Sum nothing = sums_of(zeros, page.unit).front();
  Ranges differing;
  for (std::size_t i = 0; i < page.sums.size(); ++i) {
    const std::uint64_t at = page.offset + i * page.unit;
    if (at >= size) break;
    const Range unit{at, std::min<std::uint64_t>(page.unit, size - at)};
    if (page.sums[i] == nothing && unit.length == page.unit) continue;
    const bool same = std::any_of(equal.begin(), equal.end(),
                                  [&](const Range& r) { return r.offset <= unit.offset && unit.end() <= r.end(); });
    if (!same) differing.add(unit);
  }
  return differing;
}

Json to_json(const Ranges& ranges) {
  Json list = Json::array();
  for (const Range& r : ranges) list.push_back({r.offset, r.length});
  return list;
}

Result<Ranges> parse_ranges(const Json& list, std::uint64_t size) {
  if (!list.is_array()) return malformed("ranges");
  Ranges ranges;
  std::uint64_t from = 0;
  for (const Json& item : list) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_number_unsigned() || !item[1].is_number_unsigned()) {
      return malformed("ranges");
    }
    const Range range{item[0].get<std::uint64_t>(), item[1].get<std::uint64_t>()};
    if (range.offset < from || range.offset > size || range.length > size - range.offset) return malformed("ranges");
    from = range.end();
    ranges.add(range);
  }
  return ranges;
}

}  // namespace sdr::cli
