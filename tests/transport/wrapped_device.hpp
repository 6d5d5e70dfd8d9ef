// A Device whose endpoints stand between those of another one and their user: a test overrides what it wants to be
// otherwise.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "transport/transport.hpp"

namespace sdr::testing_support {

class ForwardingEndpoint : public transport::Endpoint {
 public:
  explicit ForwardingEndpoint(std::unique_ptr<transport::Endpoint> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] const transport::EndpointFacts& facts() const override { return inner_->facts(); }
  [[nodiscard]] transport::EndpointCounters counters() const override { return inner_->counters(); }
  [[nodiscard]] std::vector<std::byte> info() const override { return inner_->info(); }
  Result<void> connect(std::span<const std::byte> remote_info) override { return inner_->connect(remote_info); }
  [[nodiscard]] std::string peer_name() const override { return inner_->peer_name(); }
  Result<transport::Aim> expose(core::SlotIndex slot, core::Generation generation,
                                std::span<std::byte> buffer) override {
    return inner_->expose(slot, generation, buffer);
  }
  void retract(core::SlotIndex slot) override { inner_->retract(slot); }
  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now) override {
    return inner_->poll(channel, out, now);
  }
  std::size_t write(std::span<const transport::Packet> packets, TimePoint now) override {
    return inner_->write(packets, now);
  }
  [[nodiscard]] std::uint64_t writes_finished() const override { return inner_->writes_finished(); }
  bool send_control(std::span<const std::byte> datagram, TimePoint now) override {
    return inner_->send_control(datagram, now);
  }
  std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now) override {
    return inner_->receive_control(into, now);
  }
  void advance(TimePoint now) override { inner_->advance(now); }
  [[nodiscard]] int channel_fd(core::ChannelIndex channel) const override { return inner_->channel_fd(channel); }
  [[nodiscard]] int control_fd() const override { return inner_->control_fd(); }
  [[nodiscard]] TimePoint next_event() const override { return inner_->next_event(); }

 private:
  std::unique_ptr<transport::Endpoint> inner_;
};

class WrappedDevice final : public transport::Device {
 public:
  using Wrap = std::function<std::unique_ptr<transport::Endpoint>(std::unique_ptr<transport::Endpoint>)>;
  WrappedDevice(transport::Device& inner, Wrap wrap) : inner_(inner), wrap_(std::move(wrap)) {}

  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] Result<std::uint16_t> max_payload(const std::string& remote) const override {
    return inner_.max_payload(remote);
  }
  Result<std::unique_ptr<transport::Endpoint>> create_endpoint(const transport::EndpointOptions& options) override {
    auto made = inner_.create_endpoint(options);
    if (!made) return made.error();
    return wrap_(std::move(made).value());
  }

 private:
  transport::Device& inner_;
  Wrap wrap_;
};

}  // namespace sdr::testing_support
