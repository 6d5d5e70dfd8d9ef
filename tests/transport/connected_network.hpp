// ConnectedNetwork: two connected endpoints on this machine that packets reach by themselves, in real time: what the
// networks over kernel sockets and over RDMA devices have in common.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "conformance.hpp"

namespace sdr::transport::conformance {

class ConnectedNetwork : public Network {
 public:
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

 protected:
  // Makes the endpoints, anew if there are some, and connects them. False, with a test failure added, when that fails.
  bool start(Device& device_a, Device& device_b, const EndpointOptions& a, const EndpointOptions& b) {
    close();
    auto end_a = device_a.create_endpoint(a);
    auto end_b = device_b.create_endpoint(b);
    if (!end_a || !end_b) {
      ADD_FAILURE() << (end_a ? end_b : end_a).error().message;
      return false;
    }
    a_ = std::move(end_a).value();
    b_ = std::move(end_b).value();
    for (const auto& connected : {a_->connect(b_->info()), b_->connect(a_->info())}) {
      if (connected) continue;
      ADD_FAILURE() << connected.error().message;
      return false;
    }
    for (std::uint8_t c = 0; c < b.channels; ++c) watch(b_->channel_fd(core::ChannelIndex(c)));
    watch(a_->control_fd());
    watch(b_->control_fd());
    return true;
  }

  // For destructors: endpoints go before their devices.
  void close() {
    a_.reset();
    b_.reset();
    watched_.clear();
  }

 private:
  void watch(int fd) { watched_.push_back({.fd = fd, .events = POLLIN, .revents = 0}); }

  std::unique_ptr<Endpoint> a_, b_;
  std::vector<pollfd> watched_;
};

}  // namespace sdr::transport::conformance
