// JsonFields: an object of a JSON file, whose fields are taken one by one, strictly.
//
// A field that is not known is refused, since a typing error would otherwise be a setting that nobody looks at. The
// first thing that is wrong is kept and names the field, the value and the range; taking goes on with zeros, so that a
// reader asks once, at its end.
//
// One thread; the object outlives this.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "sdr/report.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

class JsonFields {
 public:
  // `where` is the path of the object in its file ("payloads[0]"); empty for the file itself, which errors call `file`.
  JsonFields(const Json& object, std::string file, std::string where, std::initializer_list<std::string_view> known);

  [[nodiscard]] bool has(std::string_view name) const;
  const Json& take(std::string_view name);
  double number(std::string_view name, double least, double most);
  std::uint64_t whole(std::string_view name, double least, double most);

  void fail(std::string message);
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // "rtt_ms.min"
  [[nodiscard]] std::string label(std::string_view name) const;

 private:
  const Json& object_;
  std::string file_;
  std::string where_;
  std::optional<Error> error_;
};

// The whole of a file that may be so long; System when it cannot be read, InvalidArgument when it is longer.
Result<std::string> read_whole_file(const std::string& path, std::size_t longest);
// Whether a report can be written is known before the measurement; what is there stays until there is something better,
// and nothing is left of a run that comes to nothing. No path: nothing to write.
Result<void> check_writable(const std::string& path);
Result<void> write_json(const std::string& path, const Json& json);
// InvalidArgument says where it breaks off.
Result<Json> parse_json(std::string_view text);
// A value as it stands in a file, cut to what fits in a message.
std::string shown(const Json& value);

}  // namespace sdr::cli
