#include "sdr/json_fields.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace sdr::cli {

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 40;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

Result<Json> parse_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("is no JSON: it breaks off or is wrong at byte {} of {}", error.byte, text.size())};
  }
}

Result<std::string> read_whole_file(const std::string& path, std::size_t longest) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(longest + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  // A directory opens, and cannot be read.
  if (!file.is_open() || file.bad()) {
    return Error{ErrorCode::System, fmt::format("cannot be read: {}", std::strerror(errno))};
  }
  if (text.size() > longest) {
    return Error{ErrorCode::InvalidArgument, fmt::format("is longer than {}", to_string(Bytes{longest}))};
  }
  return text;
}

namespace {

Error cannot_write(const std::string& path) {
  return {ErrorCode::System, fmt::format("cannot write {}", path)};
}

}  // namespace

Result<void> check_writable(const std::string& path) {
  if (path.empty()) return {};
  std::error_code unknown;
  const bool was_there = std::filesystem::exists(path, unknown);
  if (!std::ofstream(path, std::ios::binary | std::ios::app)) return cannot_write(path);
  if (!was_there) std::filesystem::remove(path, unknown);
  return {};
}

Result<void> write_json(const std::string& path, const Json& json) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << json.dump(2) << '\n';
  if (file.flush()) return {};
  return cannot_write(path);
}

JsonFields::JsonFields(const Json& object, std::string file, std::string where,
                       std::initializer_list<std::string_view> known)
    : object_(object), file_(std::move(file)), where_(std::move(where)) {
  if (!object.is_object()) fail(fmt::format("{} {} is not an object", label(""), shown(object)));
  if (error_) return;
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string names;
    for (const std::string_view one : known) names += (names.empty() ? "" : ", ") + std::string(one);
    fail(fmt::format("unknown field {}; there are {}", label(name), names));
  }
}

bool JsonFields::has(std::string_view name) const {
  return object_.is_object() && object_.contains(std::string(name));
}

const Json& JsonFields::take(std::string_view name) {
  static const Json nothing;
  if (error_) return nothing;
  const auto found = object_.find(std::string(name));
  if (found != object_.end()) return *found;
  fail(fmt::format("field {} is missing", label(name)));
  return nothing;
}

double JsonFields::number(std::string_view name, double least, double most) {
  const Json& value = take(name);
  if (error_) return 0;
  // Written so that what is not a number is refused as well.
  if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most) return value.get<double>();
  fail(fmt::format("field {} {} is not a number from {} to {}", label(name), shown(value), least, most));
  return 0;
}

std::uint64_t JsonFields::whole(std::string_view name, double least, double most) {
  const double value = number(name, least, most);
  if (!error_ && !take(name).is_number_unsigned()) {
    fail(fmt::format("field {} {} is not a whole number from {} to {}", label(name), shown(take(name)), least, most));
  }
  return error_ ? 0 : static_cast<std::uint64_t>(value);
}

void JsonFields::fail(std::string message) {
  if (!error_) error_ = Error{ErrorCode::InvalidArgument, std::move(message)};
}

std::string JsonFields::label(std::string_view name) const {
  if (name.empty()) return where_.empty() ? file_ : where_;
  return where_.empty() ? std::string(name) : fmt::format("{}.{}", where_, name);
}

}  // namespace sdr::cli
