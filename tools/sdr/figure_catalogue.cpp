#include "sdr/figure_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace sdr::cli {
namespace {

// "10" takes in 10a to 10d, "1" nothing.
bool names(std::string_view asked, std::string_view id) {
  if (asked == id) return true;
  const bool has_part = id.front() < 'a' && id.back() >= 'a';
  return has_part && asked == id.substr(0, id.size() - 1);
}

// "1e-3", "2.7e-2".
std::string power_of_ten(double value) {
  std::string text = fmt::format("{:.1e}", value);
  for (const std::string_view idle : {"e-0", "e+0"}) {
    const std::size_t at = text.find(idle);
    if (at != std::string::npos) text.erase(at + 2, 1);
  }
  const std::size_t whole = text.find(".0e");
  if (whole != std::string::npos) text.erase(whole, 2);
  return text;
}

}  // namespace

const std::vector<CatalogueEntry>& figure_catalogue() {
  static const std::vector<CatalogueEntry> catalogue = {
      {"3a", figure_3a},
      {"3b", figure_3b},
      {"3c", figure_3c},
      {"9", figure_9},
      {"10a", figure_10a},
      {"10b", figure_10b},
      {"10c", figure_10c},
      {"10d", figure_10d},
      {"11", figure_11},
      {"12", figure_12},
      {"13a", figure_13a},
      {"13b", figure_13b},
      {"adaptive", figure_adaptive},
      {"adaptive-bursts", figure_adaptive_bursts},
      {"adaptive-estimate", figure_adaptive_estimate},
  };
  return catalogue;
}

Result<std::vector<CatalogueEntry>> choose_figures(const std::vector<std::string>& ids) {
  const std::vector<CatalogueEntry>& all = figure_catalogue();
  if (ids.empty()) return all;
  std::set<std::string_view> chosen;
  for (const std::string& id : ids) {
    const std::size_t before = chosen.size();
    bool known = false;
    for (const CatalogueEntry& entry : all) {
      if (!names(id, entry.id)) continue;
      chosen.insert(entry.id);
      known = true;
    }
    if (known || chosen.size() > before) continue;
    std::string there;
    for (const CatalogueEntry& entry : all) there += fmt::format("{}{}", there.empty() ? "" : ", ", entry.id);
    return Error{ErrorCode::InvalidArgument, fmt::format("no figure \"{}\"; there are {}", id, there)};
  }
  std::vector<CatalogueEntry> entries;
  std::copy_if(all.begin(), all.end(), std::back_inserter(entries),
               [&](const CatalogueEntry& entry) { return chosen.contains(entry.id); });
  return entries;
}

std::string to_string(double value, Unit unit) {
  if (!std::isfinite(value)) return "not measured";
  switch (unit) {
    case Unit::Times:
      return fmt::format("{:.2f}x", value);
    case Unit::Probability:
      return power_of_ten(value);
    case Unit::Kilometres:
      return fmt::format("{:.0f} km", value);
    case Unit::Count:
      return fmt::format("{:.0f}", value);
    case Unit::Factor:
      return fmt::format("{:g}", value);
    case Unit::Number:
      return fmt::format("{:.5g}", value);
    case Unit::Size:
      break;
  }
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t name = 0;
  while (value >= 1024 && name + 1 < std::size(kNames)) {
    value /= 1024;
    ++name;
  }
  return fmt::format("{:.3g} {}", value, kNames[name]);
}

}  // namespace sdr::cli
