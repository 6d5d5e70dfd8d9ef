// What the command says: results on stdout, errors as one line on stderr, and the exit codes.
//
// One thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

// "sdr perf: MESSAGE" on stderr, on one line whatever the message holds. Returns the exit code that goes with the
// error: wrong usage when an argument is at fault, failed otherwise.
int complain(std::string_view subcommand, const Error& error);

// Text from elsewhere (a peer, a file name) made fit for one line of a terminal: control characters become '?', and
// what is longer than a line or two is cut.
std::string printable(std::string_view text);

void print_json(const Json& json);

// Rows of name and value, aligned.
class Table {
 public:
  void row(std::string name, std::string value) { rows_.emplace_back(std::move(name), std::move(value)); }
  void print() const;

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

[[nodiscard]] double milliseconds(Duration duration);
// Null in JSON for what is not known: a number that is not finite has no JSON form.
[[nodiscard]] Json number_or_null(double value);

}  // namespace sdr::cli
