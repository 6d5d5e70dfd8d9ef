#include "sdr/probe_host.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "sdr/session.hpp"

namespace sdr::cli {
namespace {

std::string read_all(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string_view> pieces(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> found;
  for (std::size_t at = text.find_first_not_of(separators); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    found.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(separators, end);
  }
  return found;
}

std::uint64_t number(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

std::uint64_t drops_of_interfaces(std::string_view dev) {
  std::uint64_t sum = 0;
  for (const std::string_view line : pieces(dev, "\n")) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;  // the head of the table
    const auto columns = pieces(line.substr(colon + 1), " ");
    // bytes packets errs drop fifo frame compressed multicast, and on the way out the same up to fifo.
    if (columns.size() < 13) continue;
    for (const std::size_t column : {3U, 4U, 11U, 12U}) sum += number(columns[column]);
  }
  return sum;
}

// Of the table whose lines begin with "Udp:": names, then numbers.
std::uint64_t udp_counter(std::string_view snmp, std::string_view name) {
  std::vector<std::string_view> names;
  for (const std::string_view line : pieces(snmp, "\n")) {
    if (!line.starts_with("Udp:")) continue;
    auto columns = pieces(line, " ");
    if (names.empty()) {
      names = std::move(columns);
      continue;
    }
    for (std::size_t i = 0; i < names.size() && i < columns.size(); ++i) {
      if (names[i] == name) return number(columns[i]);
    }
  }
  return 0;
}

std::uint64_t udp6_counter(std::string_view snmp6, std::string_view name) {
  for (const std::string_view line : pieces(snmp6, "\n")) {
    const auto columns = pieces(line, " \t");
    if (columns.size() == 2 && columns[0] == name) return number(columns[1]);
  }
  return 0;
}

}  // namespace

HostCounters HostCounters::now() {
  return parse(read_all("/proc/net/softnet_stat"), read_all("/proc/net/dev"), read_all("/proc/net/snmp"),
               read_all("/proc/net/snmp6"));
}

HostCounters HostCounters::parse(std::string_view softnet_stat, std::string_view dev, std::string_view snmp,
                                 std::string_view snmp6) {
  HostCounters counters;
  for (const std::string_view line : pieces(softnet_stat, "\n")) {
    const auto columns = pieces(line, " ");
    if (columns.size() >= 2) counters.backlog_drops += number(columns[1], 16);
  }
  counters.interface_drops = drops_of_interfaces(dev);
  counters.receive_buffer_drops = udp_counter(snmp, "RcvbufErrors") + udp6_counter(snmp6, "Udp6RcvbufErrors");
  counters.send_buffer_drops = udp_counter(snmp, "SndbufErrors") + udp6_counter(snmp6, "Udp6SndbufErrors");
  return counters;
}

HostCounters HostCounters::since(const HostCounters& earlier) const {
  const auto more = [](std::uint64_t now, std::uint64_t then) { return now > then ? now - then : 0; };
  return {.backlog_drops = more(backlog_drops, earlier.backlog_drops),
          .interface_drops = more(interface_drops, earlier.interface_drops),
          .receive_buffer_drops = more(receive_buffer_drops, earlier.receive_buffer_drops),
          .send_buffer_drops = more(send_buffer_drops, earlier.send_buffer_drops)};
}

Json HostCounters::to_json() const {
  return {{"backlog_drops", backlog_drops},
          {"interface_drops", interface_drops},
          {"receive_buffer_drops", receive_buffer_drops},
          {"send_buffer_drops", send_buffer_drops}};
}

Result<HostCounters> HostCounters::from_json(const Json& json) {
  HostCounters counters;
  for (const auto& [name, into] :
       {std::pair{"backlog_drops", &counters.backlog_drops}, std::pair{"interface_drops", &counters.interface_drops},
        std::pair{"receive_buffer_drops", &counters.receive_buffer_drops},
        std::pair{"send_buffer_drops", &counters.send_buffer_drops}}) {
    const Result<std::uint64_t> value = get_number(json, name);
    if (!value) return value.error();
    *into = *value;
  }
  return counters;
}

}  // namespace sdr::cli
