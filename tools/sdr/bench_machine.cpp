#include "sdr/bench_machine.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

namespace sdr::cli {
namespace {

// "model name : AMD EPYC"; processors other than x86 have no such line.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return printable(line.substr(colon + 2));
  }
  return "unknown";
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? fmt::format("{} {} {}", names.sysname, names.release, names.machine) : "unknown";
}

// "0, 1"
std::string listed(const std::vector<unsigned>& cores) {
  std::string text;
  for (const unsigned core : cores) text += (text.empty() ? "" : ", ") + std::to_string(core);
  return text;
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = "unknown";
  if (::gmtime_r(&now, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

std::vector<unsigned> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

Result<void> keep_to_cores(const std::vector<unsigned>& cores) {
  const std::vector<unsigned> allowed = allowed_cores();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned core : cores) {
    if (std::find(allowed.begin(), allowed.end(), core) == allowed.end())
      return Error{
          ErrorCode::InvalidArgument,
          fmt::format("--cpu {} is none of the cores that this process may run on: {}", core, listed(allowed))};
    CPU_SET(core, &set);
  }
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return Error{ErrorCode::System, fmt::format("--cpu {}: {}", listed(cores), std::strerror(errno))};
}

Json machine_facts() {
  return {{"cpu", cpu_model()}, {"kernel", kernel_release()}, {"date", date()}, {"cores", allowed_cores()}};
}

}  // namespace sdr::cli
