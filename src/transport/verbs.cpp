#include "transport/verbs.hpp"

#include <fmt/core.h>

#include "transport/verbs_endpoint.hpp"
#include "transport/verbs_memory.hpp"
#include "transport/verbs_port.hpp"

namespace sdr::transport {
namespace {

class VerbsDevice final : public Device {
 public:
  VerbsDevice(std::shared_ptr<VerbsPort> port, VerbsOptions options)
      : port_(std::move(port)), memory_(std::make_shared<VerbsMemory>(port_)), options_(std::move(options)) {}

  [[nodiscard]] std::string name() const override { return "verbs:" + port_->name(); }

  // What the port carries now: the RDMA MTU leaves room for all headers.
  [[nodiscard]] Result<std::uint16_t> max_payload(const std::string& /*remote*/) const override {
    const auto ready = port_->ready();
    if (!ready) return ready.error();
    return verbs::bytes_of(ready->active_mtu);
  }

  Result<MemoryKey> register_memory(std::span<std::byte> region) override { return memory_->add(region); }
  void deregister_memory(MemoryKey key) override { memory_->remove(key); }

  Result<std::unique_ptr<Endpoint>> create_endpoint(const EndpointOptions& options) override {
    const auto most = max_payload("");
    if (!most) return most.error();
    if (Result<void> valid = check(options, *most); !valid) return valid.error();
    return VerbsEndpoint::make(port_, memory_, options_, options);
  }

 private:
  std::shared_ptr<VerbsPort> port_;
  std::shared_ptr<VerbsMemory> memory_;
  VerbsOptions options_;
};

}  // namespace

bool have_verbs() {
  return true;
}

Result<std::unique_ptr<Device>> open_verbs(const VerbsOptions& options) {
  auto port = VerbsPort::open(options.device, options.port);
  if (!port) return port.error();
  if (const auto ready = (*port)->ready(); !ready) return ready.error();
  return std::unique_ptr<Device>(std::make_unique<VerbsDevice>(std::move(port).value(), options));
}

}  // namespace sdr::transport
