#include "capi/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace sdr::capi {
namespace {

constexpr std::uint64_t kMostBatches = 65536;
constexpr std::uint64_t kMostWorkers = 1024;
constexpr std::uint64_t kMostThreads = 64;  // of a device; more than its channels have nothing to do

// Reads variables one by one and remembers the first that is wrong; unset and empty ones give nothing.
class Reader {
 public:
  explicit Reader(const Environment::Lookup& lookup) : lookup_(lookup) {}

  std::optional<std::uint64_t> number(std::string_view name, std::uint64_t least, std::uint64_t most) {
    const std::optional<std::string> text = lookup_(name);
    if (!text || text->empty()) return std::nullopt;
    std::uint64_t value = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    if (error == std::errc() && stop == end && value >= least && value <= most) return value;
    refuse(fmt::format("{}={} is not a whole number from {} to {}", name, *text, least, most));
    return std::nullopt;
  }

  std::optional<bool> flag(std::string_view name) {
    const std::optional<std::string> text = lookup_(name);
    if (!text || text->empty()) return std::nullopt;
    if (*text == "1" || *text == "on" || *text == "true" || *text == "yes") return true;
    if (*text != "0" && *text != "off" && *text != "false" && *text != "no")
      refuse(fmt::format("{}={} is neither 0 nor 1", name, *text));
    return false;
  }

  void refuse(std::string message) {
    if (!error_) error_ = Error{ErrorCode::InvalidArgument, std::move(message)};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  const Environment::Lookup& lookup_;
  std::optional<Error> error_;
};

std::optional<OffloadOptions> read_offload(Reader& reader, const Environment::Lookup& lookup) {
  OffloadOptions options{.receive = false, .send = false};
  const std::string name = lookup("SDR_OFFLOAD_DEVICE").value_or("");
  const std::optional<OffloadDevice> named = parse_offload_device(name);
  if (!named && !name.empty() && name != "none")
    reader.refuse(fmt::format("SDR_OFFLOAD_DEVICE={} is none of none, host and riscv", name));
  const std::optional<bool> sends = reader.flag("SDR_DPA_TX_OFFLOADING_ENABLE");
  const auto workers = reader.number("SDR_DPA_TX_NUM_WORKERS", 0, kMostWorkers).value_or(0);
  // Switched off in so many words, the number of workers asks for nothing.
  options.send = sends.value_or(workers != 0);
  options.receive = named.has_value();
  if (options.send && name == "none")
    reader.refuse(
        "SDR_OFFLOAD_DEVICE=none leaves no device for the sending that SDR_DPA_TX_OFFLOADING_ENABLE asks for");
  if (!options.receive && !options.send) return std::nullopt;
  options.threads = workers == 0 ? 1 : static_cast<unsigned>(std::min(workers, kMostThreads));
  options.device =
      named.value_or(open_offload({.device = OffloadDevice::Riscv}).ok() ? OffloadDevice::Riscv : OffloadDevice::Host);
  return options;
}

// Accepted, since a socket has nothing that they could change; nonsense is not.
void check_meaningless(Reader& reader) {
  reader.number("SDR_SEND_CTX_SWR_BATCH_SIZE", 1, kMostBatches);
  reader.number("SDR_RECV_CTX_ROOT_MKEY_ENTRIES_FACTOR", 1, UINT32_MAX);
  reader.number("SDR_RECV_CTX_N_ROOT_MKEYS", 1, UINT32_MAX);
  reader.flag("SDR_USE_UC_QP");
  reader.flag("SDR_NO_RC_RNR_RETRY");
}

}  // namespace

Result<Environment> Environment::read(const Lookup& lookup) {
  Reader reader(lookup);
  Environment environment;
  environment.link = lookup("SDR_LINK").value_or("");
  if (const auto generations = reader.number("SDR_QP_NUM_GENERATIONS", 2, UINT8_MAX))
    environment.generations = static_cast<std::uint8_t>(*generations);
  environment.report_send = reader.flag("SDR_DPA_TX_PROFILE_STATS_REPORT").value_or(false);
  environment.report_receive = reader.flag("SDR_DPA_RX_PROFILE_STATS_REPORT").value_or(false);
  environment.offload = read_offload(reader, lookup);
  check_meaningless(reader);
  if (reader.error()) return *reader.error();
  return environment;
}

Result<Environment> Environment::of_process() {
  Result<Environment> environment = read([](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (!environment) std::fprintf(stderr, "libsdr: %s\n", environment.error().message.c_str());
  return environment;
}

}  // namespace sdr::capi
