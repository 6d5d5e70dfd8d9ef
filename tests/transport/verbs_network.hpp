// VerbsNetwork: two endpoints over two RDMA devices of this machine that reach each other, for the conformance suite
// and for the tests of verbs alone. Which devices: the environment's SDR_TEST_VERBS, "rxa,rxb"; without it there are
// none, and nothing of verbs runs.
//
// SDR_TEST_VERBS_HOLD and SDR_TEST_VERBS_RELEASE are shell commands that keep back what the first device sends, and let
// it go (netem); SDR_TEST_VERBS_DOWN and SDR_TEST_VERBS_UP take its interface down and up. ./dev rdma-test sets all of
// them in its machine.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "connected_network.hpp"
#include "transport/verbs.hpp"

namespace sdr::transport::conformance {

inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

inline constexpr const char* kNoVerbs = "no RDMA devices to test: set SDR_TEST_VERBS=A,B, or run ./dev rdma-test";

struct VerbsPairNames {
  std::string a;
  std::string b;
};

inline std::optional<VerbsPairNames> verbs_pair() {
  const std::string text = environment("SDR_TEST_VERBS");
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return std::nullopt;
  return VerbsPairNames{text.substr(0, comma), text.substr(comma + 1)};
}

// Runs one of the commands above; false when there is none, or it fails.
inline bool run_command(const char* name) {
  const std::string command = environment(name);
  return !command.empty() && std::system(command.c_str()) == 0;
}

class VerbsNetwork final : public ConnectedNetwork {
 public:
  // Null, with a test failure added, when the pair cannot be made.
  static std::unique_ptr<VerbsNetwork> make(const EndpointOptions& a, const EndpointOptions& b, VerbsKeys keys) {
    const auto names = verbs_pair();
    if (!names) {
      ADD_FAILURE() << kNoVerbs;
      return nullptr;
    }
    auto device_a = open_verbs({.device = names->a, .keys = keys});
    auto device_b = open_verbs({.device = names->b, .keys = keys});
    if (!device_a || !device_b) {
      ADD_FAILURE() << (device_a ? device_b : device_a).error().message;
      return nullptr;
    }
    std::unique_ptr<VerbsNetwork> network(new VerbsNetwork);
    network->registers_ = keys == VerbsKeys::Window;
    network->device_a_ = std::move(device_a).value();
    network->device_b_ = std::move(device_b).value();
    return network->start(a, b) ? std::move(network) : nullptr;
  }

  // Makes the endpoints, anew if there are some, and connects them. False, with a test failure added, when that fails.
  bool start(const EndpointOptions& a, const EndpointOptions& b) {
    return ConnectedNetwork::start(*device_a_, *device_b_, a, b);
  }
  ~VerbsNetwork() override { close(); }

  Device& device() override { return *device_b_; }
  Device& device_a() { return *device_a_; }
  void hold() override { EXPECT_TRUE(run_command("SDR_TEST_VERBS_HOLD")); }
  void release() override { EXPECT_TRUE(run_command("SDR_TEST_VERBS_RELEASE")); }

  // A window is bound within registered memory only. What was registered there before is of a test's earlier vector.
  void exposing(std::span<std::byte> buffer) override {
    if (!registers_ || buffer.empty()) return;
    std::erase_if(registered_, [&](const auto& earlier) {
      const std::span<std::byte> bytes = earlier.first;
      const bool overlaps = bytes.data() < buffer.data() + buffer.size() && buffer.data() < bytes.data() + bytes.size();
      if (overlaps) device_b_->deregister_memory(earlier.second);
      return overlaps;
    });
    const auto key = device_b_->register_memory(buffer);
    ASSERT_TRUE(key.ok()) << key.error().message;
    registered_.emplace_back(buffer, *key);
  }

 private:
  VerbsNetwork() = default;

  bool registers_ = false;
  std::unique_ptr<Device> device_a_, device_b_;
  std::vector<std::pair<std::span<std::byte>, MemoryKey>> registered_;
};

}  // namespace sdr::transport::conformance
