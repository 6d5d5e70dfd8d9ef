// VerbsPort: one port of an opened RDMA device, with the protection domain that everything made on it shares.
//
// Errors say what to do: no device of that name (and which there are), no permission, a port that is down, an MTU below
// what libsdr needs. State and GIDs are asked of the device each time, since cables and addresses come and go.
//
// Threads: any; the objects of libibverbs are safe to share. Lives as long as the last thing made from it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/verbs.hpp"
#include "transport/verbs_gid.hpp"
#include "transport/verbs_objects.hpp"

namespace sdr::transport {

class VerbsPort {
 public:
  // A UD datagram must hold a control datagram, and the contract asks for one of at least 512 bytes.
  static constexpr std::uint16_t kLeastMtu = 1024;

  static Result<std::shared_ptr<VerbsPort>> open(const std::string& device, std::uint8_t port);

  [[nodiscard]] ibv_context* context() const { return context_.get(); }
  [[nodiscard]] ibv_pd* domain() const { return domain_.get(); }
  [[nodiscard]] std::uint8_t number() const { return number_; }
  [[nodiscard]] const ibv_device_attr& attributes() const { return attributes_; }
  // "rxe0" or, of a device with more than one port, "mlx5_0 port 2".
  [[nodiscard]] std::string name() const;

  [[nodiscard]] Result<ibv_port_attr> state() const;
  // System error when it is not ready for traffic, or its MTU too small.
  [[nodiscard]] Result<ibv_port_attr> ready() const;

  // Its GIDs, with the prefix length of those whose address an interface has.
  [[nodiscard]] std::vector<VerbsGid> gids() const;
  // What a connection may be made from: one by its index, or all that are usable, best first.
  [[nodiscard]] Result<std::vector<VerbsGid>> gids_for(std::optional<std::uint32_t> index) const;

  // Whether receives get type-1 memory windows (verbs_keys.hpp); otherwise memory regions.
  [[nodiscard]] VerbsKeys keys(VerbsKeys wanted) const;

 private:
  VerbsPort() = default;

  verbs::Context context_;
  verbs::ProtectionDomain domain_;
  ibv_device_attr attributes_{};
  std::uint8_t number_ = 1;
};

}  // namespace sdr::transport
