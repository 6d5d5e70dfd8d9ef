// VerbsDevice: libsdr's packets as RDMA Writes with immediate over unreliable connected queue pairs (paper section 3),
// through libibverbs: RoCE NICs and Linux's soft-RoCE.
//
// This header shows nothing of libibverbs. In a build without it (SDR_VERBS=OFF, or not found) the functions are there
// all the same and say so (verbs_absent.cpp).
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdr/result.hpp"
#include "transport/transport.hpp"
#include "transport/verbs_gid.hpp"

namespace sdr::transport {

// What makes the memory of a posted receive reachable, and no longer reachable: verbs_keys.hpp.
enum class VerbsKeys : std::uint8_t { Auto, Region, Window };
[[nodiscard]] std::string_view to_string(VerbsKeys keys);

struct VerbsOptions {
  std::string device;                // as `ibv_devices` lists it: "mlx5_0", "rxe0"
  std::uint8_t port = 1;             //
  std::optional<std::uint32_t> gid;  // index in the port's table; nothing: the best for the peer (verbs_gid.hpp)
  VerbsKeys keys = VerbsKeys::Auto;  // Auto: windows where the device has them and keeps their bounds
};

// "rxe0" or "rxe0,gid=3,port=1,keys=region". InvalidArgument names the part that is wrong.
Result<VerbsOptions> parse_verbs_options(std::string_view text);

// System error when there is no such device, no permission to open it, or its port is not up.
Result<std::unique_ptr<Device>> open_verbs(const VerbsOptions& options);

// What a person wants to know of an RDMA device (sdr info).
struct VerbsFacts {
  std::string device;
  std::string trouble;  // why it cannot be used now, empty if it can
  std::string state;    // of port 1: "ACTIVE", "DOWN"
  std::uint16_t payload = 0;
  VerbsKeys keys = VerbsKeys::Region;
  std::vector<VerbsGid> gids;  // usable ones, best first
};
std::vector<VerbsFacts> list_verbs_devices();
// Whether a device of that name is there, usable or not.
[[nodiscard]] bool is_verbs_device(std::string_view name);
// Whether this build has libibverbs.
[[nodiscard]] bool have_verbs();

}  // namespace sdr::transport
