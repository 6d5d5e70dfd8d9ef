// sdr info: what libsdr finds on this machine, and what its limits are.
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "runtime/thread.hpp"
#include "sdr/device.hpp"
#include "sdr/queue_pair.hpp"
#include "sdr/report.hpp"
#include "sdr/subcommands.hpp"
#include "transport/transport.hpp"
#include "transport/udp.hpp"
#include "transport/udp_address.hpp"
#include "transport/udp_socket.hpp"
#include "transport/verbs.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "info";

constexpr const char* kExamples = R"(Examples:
  sdr info            interfaces, what CPU and kernel offer, limits, memory a QP takes
  sdr info --json     the same for a script)";

struct InterfaceAddress {
  std::string name;
  std::string address;
  std::uint32_t mtu = 0;
  std::uint16_t payload = 0;
};

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> found;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, &::freeifaddrs);
  for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const transport::SocketAddress address(i->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    const transport::UdpDevice device({.bind_address = address.host()});
    const Result<std::uint16_t> payload = device.max_payload("");
    found.push_back({.name = i->ifa_name,
                     .address = address.host(),
                     .mtu = address.interface_mtu().value_or(0),
                     .payload = payload ? *payload : std::uint16_t{0}});
  }
  return found;
}

Json rdma_devices() {
  Json devices = Json::array();
  for (const transport::VerbsFacts& facts : transport::list_verbs_devices()) {
    Json gids = Json::array();
    for (const transport::VerbsGid& gid : facts.gids) {
      gids.push_back(
          {{"index", gid.index}, {"address", gid.to_string()}, {"roce_version", static_cast<int>(gid.version)}});
    }
    devices.push_back({{"device", "verbs:" + facts.device},
                       {"state", facts.state},
                       {"payload_auto", facts.payload},
                       {"late_packet_keys", transport::to_string(facts.keys)},
                       {"gids", gids},
                       {"trouble", facts.trouble.empty() ? Json(nullptr) : Json(facts.trouble)}});
  }
  return devices;
}

bool kernel_has(int option) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const int value = option == UDP_SEGMENT ? 1200 : 1;
  const bool has = ::setsockopt(fd, IPPROTO_UDP, option, &value, sizeof value) == 0;
  ::close(fd);
  return has;
}

// A number from /proc/sys; null when it is not there.
Json kernel_setting(const std::string& path) {
  std::ifstream file("/proc/sys/" + path);
  std::uint64_t value = 0;
  return file >> value ? Json(value) : Json(nullptr);
}

Json cpu_features() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return {{"avx2", __builtin_cpu_supports("avx2") != 0},
          {"avx512", __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0},
          {"gfni", __builtin_cpu_supports("gfni") != 0}};
#else
  return Json::object();
#endif
}

Result<Json> queue_pair_facts() {
  const Result<DevicePtr> device = open_device("udp:127.0.0.1");
  if (!device) return device.error();
  QueuePairOptions options;
  options.mtu = 1456_B;
  const auto queue_pair = QueuePair::create(*device, options);
  if (!queue_pair) return queue_pair.error();
  const QueuePairGeometry geometry = (*queue_pair)->geometry();
  const std::uint32_t generations = geometry.generations;
  return Json{{"mtu", geometry.mtu},
              {"max_message_bytes", geometry.max_message},
              {"slots", geometry.slots},
              {"generations", generations},
              {"state_bytes", geometry.state_bytes},
              {"bitmap_bytes_reserved", geometry.bitmap_bytes},
              {"bits_per_packet_in_flight", 1},
              {"bits_per_chunk_in_flight", 1},
              {"late_packet_reuses", generations - 1},
              {"late_packet_bound", "(generations - 1) * slots / message rate"},
              {"late_packet_bound_ms_at_1000_messages_per_s", (generations - 1.0) * geometry.slots}};
}

Json limits() {
  const QueuePairOptions defaults;
  const std::uint64_t packets = 1ULL << defaults.packet_offset_bits;
  return {{"payload_min_bytes", transport::kMinPayload},
          {"payload_max_bytes", (transport::UdpSocket::kMaxBatchBytes - 16) / 8 * 8},
          {"payload_auto_max_bytes", transport::UdpDevice::kMaxSuggestedPayload},
          {"control_max_bytes", transport::UdpDevice::kMaxControl},
          {"message_max_packets", packets},
          {"message_max_bytes_at_mtu_1456", packets * 1456},
          {"slots_max", 1ULL << defaults.message_id_bits},
          {"generations_max", 255},
          {"channels_max", 255}};
}

Result<Json> collect() {
  const Result<Json> queue_pair = queue_pair_facts();
  if (!queue_pair) return queue_pair.error();
  Json interfaces = Json::array();
  for (const InterfaceAddress& i : interface_addresses()) {
    interfaces.push_back({{"interface", i.name},
                          {"address", i.address},
                          {"mtu", i.mtu},
                          {"payload_auto", i.payload},
                          {"device", fmt::format("udp:{}", i.address)}});
  }
  return Json{{"version", SDR_VERSION},
              {"transports", transport::have_verbs() ? Json::array({"udp", "verbs"}) : Json::array({"udp"})},
              {"interfaces", interfaces},
              {"rdma_devices", rdma_devices()},
              {"cpu", {{"usable_cores", runtime::usable_cores()}, {"features", cpu_features()}}},
              {"kernel",
               {{"udp_segment", kernel_has(UDP_SEGMENT)},
                {"udp_gro", kernel_has(UDP_GRO)},
                {"rmem_max_bytes", kernel_setting("net/core/rmem_max")},
                {"wmem_max_bytes", kernel_setting("net/core/wmem_max")}}},
              {"limits", limits()},
              {"default_queue_pair", *queue_pair}};
}

std::string yes_no(const Json& value) {
  return value.get<bool>() ? "yes" : "no";
}

std::string bytes_or_unknown(const Json& value) {
  return value.is_null() ? "unknown" : to_string(Bytes{value.get<std::uint64_t>()});
}

void print_rdma_devices(Table& table, const Json& info) {
  for (const Json& i : info["rdma_devices"]) {
    if (!i["trouble"].is_null()) {
      table.row("RDMA device",
                fmt::format("{:<24} {}", i["device"].get<std::string>(), i["trouble"].get<std::string>()));
      continue;
    }
    std::string gids;
    for (const Json& gid : i["gids"]) {
      gids += fmt::format(", GID {} {} (RoCE v{})", gid["index"].get<unsigned>(), gid["address"].get<std::string>(),
                          gid["roce_version"].get<int>());
    }
    table.row("RDMA device",
              fmt::format("{:<24} {}, payload of a packet {} B, a memory {} for each receive{}",
                          i["device"].get<std::string>(), i["state"].get<std::string>(),
                          i["payload_auto"].get<std::uint64_t>(), i["late_packet_keys"].get<std::string>(), gids));
  }
  if (!info["rdma_devices"].empty()) return;
  table.row("RDMA devices", transport::have_verbs() ? "none on this machine" : "not in this build (libibverbs)");
}

void print(const Json& info) {
  Table table;
  table.row("version", info["version"].get<std::string>());
  for (const Json& i : info["interfaces"]) {
    table.row("device", fmt::format("{:<24} {} MTU {}, payload of a packet {} B", i["device"].get<std::string>(),
                                    i["interface"].get<std::string>(), i["mtu"].get<std::uint64_t>(),
                                    i["payload_auto"].get<std::uint64_t>()));
  }
  print_rdma_devices(table, info);
  std::string features;
  for (const auto& [name, has] : info["cpu"]["features"].items()) features += fmt::format(", {} {}", name, yes_no(has));
  table.row("CPU", fmt::format("{} usable cores{}", info["cpu"]["usable_cores"].get<unsigned>(), features));
  const Json& kernel = info["kernel"];
  table.row("kernel",
            fmt::format("UDP_SEGMENT {}, UDP_GRO {}; socket buffers up to {} in, {} out (net.core.rmem_max, "
                        "wmem_max)",
                        yes_no(kernel["udp_segment"]), yes_no(kernel["udp_gro"]),
                        bytes_or_unknown(kernel["rmem_max_bytes"]), bytes_or_unknown(kernel["wmem_max_bytes"])));
  const Json& limits = info["limits"];
  table.row(
      "limits",
      fmt::format("payload {} to {} B; message {} packets ({} at 1456 B); {} slots; {} generations; {} "
                  "channels",
                  limits["payload_min_bytes"].get<std::uint64_t>(), limits["payload_max_bytes"].get<std::uint64_t>(),
                  limits["message_max_packets"].get<std::uint64_t>(),
                  bytes_or_unknown(limits["message_max_bytes_at_mtu_1456"]), limits["slots_max"].get<std::uint64_t>(),
                  limits["generations_max"].get<std::uint64_t>(), limits["channels_max"].get<std::uint64_t>()));
  const Json& qp = info["default_queue_pair"];
  table.row("a default QP", fmt::format("{} slots of up to {}, {} generations; {} of state, {} of address space for "
                                        "bitmaps",
                                        qp["slots"].get<std::uint64_t>(), bytes_or_unknown(qp["max_message_bytes"]),
                                        qp["generations"].get<std::uint64_t>(), bytes_or_unknown(qp["state_bytes"]),
                                        bytes_or_unknown(qp["bitmap_bytes_reserved"])));
  table.row("a message", "1 bit a packet and 1 bit a chunk while it is in flight");
  table.row("late packets", fmt::format("told apart for {} reuses of their slot: a packet may live (generations - 1) * "
                                        "slots / message rate, {} s at 1000 messages/s",
                                        qp["late_packet_reuses"].get<std::uint64_t>(),
                                        qp["late_packet_bound_ms_at_1000_messages_per_s"].get<double>() / 1e3));
  table.print();
}

}  // namespace

void add_info(CLI::App& app, Run& run) {
  CLI::App* info = app.add_subcommand("info", "Show what libsdr finds on this machine, and its limits");
  info->footer(kExamples);
  auto json = std::make_shared<bool>(false);
  info->add_flag("--json", *json, "Report in JSON");
  info->callback([json, &run] {
    run = [json] {
      const Result<Json> found = collect();
      if (!found) return complain(kName, found.error());
      if (*json) {
        print_json(*found);
      } else {
        print(*found);
      }
      return kDone;
    };
  });
}

}  // namespace sdr::cli
