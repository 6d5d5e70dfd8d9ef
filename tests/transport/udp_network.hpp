// UdpNetwork: two UDP endpoints on this machine, for the conformance suite and for the tests of UDP alone.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <vector>

#include "conformance.hpp"
#include "transport/udp.hpp"

namespace sdr::transport::conformance {

class UdpNetwork final : public Network {
 public:
  // Null, with a test failure added, when the pair cannot be made.
  static std::unique_ptr<UdpNetwork> make(const UdpOptions& udp_a, const UdpOptions& udp_b, const EndpointOptions& a,
                                          const EndpointOptions& b) {
    auto network = std::unique_ptr<UdpNetwork>(new UdpNetwork(udp_a, udp_b));
    auto end_a = network->device_a_.create_endpoint(a);
    auto end_b = network->device_.create_endpoint(b);
    for (const auto* end : {&end_a, &end_b}) {
      if (!end->ok()) {
        ADD_FAILURE() << end->error().message;
        return nullptr;
      }
    }
    network->a_ = std::move(*end_a);
    network->b_ = std::move(*end_b);
    for (const auto& connected :
         {network->a_->connect(network->b_->info()), network->b_->connect(network->a_->info())}) {
      if (!connected) {
        ADD_FAILURE() << connected.error().message;
        return nullptr;
      }
    }
    for (std::uint8_t c = 0; c < b.channels; ++c) network->watch(network->b_->channel_fd(core::ChannelIndex(c)));
    network->watch(network->a_->control_fd());
    network->watch(network->b_->control_fd());
    return network;
  }

  Device& device() override { return device_; }
  Endpoint& a() override { return *a_; }
  Endpoint& b() override { return *b_; }
  [[nodiscard]] TimePoint now() const override {
    return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
  }
  bool step() override {
    ::poll(watched_.data(), watched_.size(), 1);
    return true;
  }

  void close_b() { b_.reset(); }

 private:
  UdpNetwork(const UdpOptions& a, const UdpOptions& b) : device_a_(a), device_(b) {}
  void watch(int fd) { watched_.push_back({.fd = fd, .events = POLLIN, .revents = 0}); }

  UdpDevice device_a_, device_;
  std::unique_ptr<Endpoint> a_, b_;
  std::vector<pollfd> watched_;
};

}  // namespace sdr::transport::conformance
