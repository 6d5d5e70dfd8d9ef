#include "sdr/bench_record.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "coding/shards.hpp"
#include "sdr/json_fields.hpp"

namespace sdr::cli {
namespace {

constexpr std::size_t kLongestFile = std::size_t{1} << 20;
constexpr double kSlowest = 1e-6;  // GB/s; beyond these something else has been written there
constexpr double kFastest = 1e5;
constexpr double kGiga = 1e9;

// Fields of a report, taken by their paths; the first that is wrong is kept.
class Reader {
 public:
  explicit Reader(const Json& report) : report_(report) {
    if (!report.is_object()) fail(fmt::format("the report {} is not an object", shown(report)));
  }

  double number(const std::string& path, double least, double most) {
    if (error_) return least;
    const Json::json_pointer pointer("/" + slashed(path));
    if (!report_.contains(pointer)) {
      fail(fmt::format("field {} is missing", path));
      return least;
    }
    const Json& value = report_.at(pointer);
    if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most) return value.get<double>();
    fail(fmt::format("field {} {} is not a number from {} to {}", path, shown(value), least, most));
    return least;
  }
  // In seconds a byte.
  double seconds(const std::string& path) { return 1 / (number(path, kSlowest, kFastest) * kGiga); }

  void fail(std::string message) {
    if (!error_) error_ = Error{ErrorCode::InvalidArgument, std::move(message)};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  static std::string slashed(std::string path) {
    for (char& c : path)
      if (c == '.') c = '/';
    return path;
  }

  const Json& report_;
  std::optional<Error> error_;
};

}  // namespace

Result<BenchRecord> BenchRecord::load(const std::string& path) {
  const Result<std::string> text = read_whole_file(path, kLongestFile);
  if (!text) return Error{text.error().code, fmt::format("bench \"{}\" {}", path, text.error().message)};
  Result<BenchRecord> record = parse(*text);
  if (!record) return Error{record.error().code, fmt::format("bench \"{}\": {}", path, record.error().message)};
  return record;
}

Result<BenchRecord> BenchRecord::parse(std::string_view text) {
  const Result<Json> report = parse_json(text);
  if (!report) return report.error();
  Reader reader(*report);
  BenchRecord record;
  // Plans count cores: what several threads do together would be taken for one. A report from elsewhere may leave it
  // out.
  if (!reader.error() && report->contains("threads")) (void)reader.number("threads", 1, 1);
  record.seconds_[8] = reader.seconds("rs_32_8.encode_GBps");
  record.xor_seconds_ = reader.seconds("xor_32_8.encode_GBps");
  if (!reader.error() && report->contains("codes")) {
    const Json& codes = report->at("codes");
    if (!codes.is_array()) reader.fail(fmt::format("field codes {} is not an array", shown(codes)));
    for (std::size_t i = 0; codes.is_array() && i < codes.size(); ++i) {
      const std::string where = fmt::format("codes.{}.", i);
      const Json* name = codes[i].is_object() && codes[i].contains("code") ? &codes[i].at("code") : nullptr;
      if (name == nullptr || !name->is_string()) {
        reader.fail(fmt::format("field {}code is missing or no text, such as \"ec-rs:32:8\"", where));
        break;
      }
      if (!name->get<std::string>().starts_with("ec-rs:")) continue;
      const double m = reader.number(where + "m", 1, coding::kMaxShards - 1);
      const double seconds = reader.seconds(where + "encode_GBps");
      // Several codes with as much parity: the slowest, to be on the safe side. (32,8) is the one above.
      double& kept = record.seconds_[static_cast<unsigned>(m)];
      if (static_cast<unsigned>(m) != 8) kept = std::max(kept, seconds);
    }
  }
  if (reader.error()) return *reader.error();
  return record;
}

Bandwidth BenchRecord::encode(const model::SchemeSpec& scheme) const {
  double seconds = xor_seconds_;
  if (scheme.kind != model::SchemeKind::EcXor) {
    const unsigned m = scheme.parity_chunks;
    const auto above = seconds_.lower_bound(m);
    if (above == seconds_.end()) {
      seconds = seconds_.rbegin()->second * m / seconds_.rbegin()->first;
    } else if (above == seconds_.begin()) {
      seconds = above->second;
    } else {
      const auto below = std::prev(above);
      const double share = static_cast<double>(m - below->first) / static_cast<double>(above->first - below->first);
      seconds = below->second + share * (above->second - below->second);
    }
  }
  return {8 / seconds};
}

}  // namespace sdr::cli
