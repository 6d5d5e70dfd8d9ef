// VerbsEndpoint: the Endpoint of a VerbsDevice: channels of UC queue pairs for data, one UD queue pair for control.
//
// Ownership: its parts are verbs_channel.hpp (receiving), verbs_sender.hpp (sending), verbs_control.hpp, verbs_keys.hpp
// (memory of posted receives). It keeps its device's port and memory alive.
//
// Failure: a queue pair in error, as after a port that went down under way, loses what was in flight and is connected
// again by advance(), as soon as the port and its address are back; nothing of it is visible but losses, and
// peer_name() says what is wrong meanwhile. The peer's end need not know.
//
// Threads: as in transport.hpp.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport.hpp"
#include "transport/verbs.hpp"
#include "transport/verbs_channel.hpp"
#include "transport/verbs_control.hpp"
#include "transport/verbs_exposures.hpp"
#include "transport/verbs_keys.hpp"
#include "transport/verbs_sender.hpp"

namespace sdr::transport {

class VerbsEndpoint final : public Endpoint {
 public:
  static Result<std::unique_ptr<Endpoint>> make(const std::shared_ptr<VerbsPort>& port,
                                                const std::shared_ptr<VerbsMemory>& memory, const VerbsOptions& verbs,
                                                const EndpointOptions& options);

  [[nodiscard]] const EndpointFacts& facts() const override { return facts_; }
  [[nodiscard]] EndpointCounters counters() const override;
  [[nodiscard]] std::vector<std::byte> info() const override;
  Result<void> connect(std::span<const std::byte> remote_info) override;
  [[nodiscard]] std::string peer_name() const override;

  Result<Aim> expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) override;
  void retract(core::SlotIndex slot) override;
  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint /*now*/) override {
    return channels_[channel.value]->poll(out);
  }

  std::size_t write(std::span<const Packet> packets, TimePoint now) override;
  [[nodiscard]] std::uint64_t writes_finished() const override { return sender_->finished(); }

  bool send_control(std::span<const std::byte> datagram, TimePoint now) override;
  std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now) override;

  void advance(TimePoint now) override;
  [[nodiscard]] int channel_fd(core::ChannelIndex channel) const override { return channels_[channel.value]->fd(); }
  // Of the control path's queue and that of finished sends.
  [[nodiscard]] int control_fd() const override { return events_.fd(); }
  [[nodiscard]] TimePoint next_event() const override;

 private:
  VerbsEndpoint(std::shared_ptr<VerbsPort> port, VerbsEvents events, const EndpointOptions& options)
      : port_(std::move(port)), options_(options), exposures_(options.slots), events_(std::move(events)) {}
  Result<void> make_parts(const std::shared_ptr<VerbsMemory>& memory, const VerbsOptions& verbs);
  Result<void> connect_data(core::ChannelIndex channel, core::Generation generation);
  Result<void> connect_control();
  [[nodiscard]] bool broken() const;
  void mend(TimePoint now);
  Result<void> reconnect_failed();
  void watch_sends();

  std::shared_ptr<VerbsPort> port_;
  EndpointOptions options_;
  EndpointFacts facts_;
  std::vector<VerbsGid> gids_;
  std::uint16_t port_mtu_ = 0;
  VerbsPath path_;
  verbs_wire::PeerInfo peer_;
  bool connected_ = false;

  std::atomic<bool> alarm_{false};  // a queue pair has failed
  TimePoint mend_at_{};
  std::string fault_;           // why nothing gets through at present
  bool control_empty_ = false;  // the last look at the control path found nothing, and armed it

  // Queue pairs go first, then what they use.
  std::unique_ptr<VerbsReceiveKeys> keys_;
  VerbsExposures exposures_;
  VerbsEvents events_;
  std::unique_ptr<WakingQueue> sends_;
  std::unique_ptr<VerbsSender> sender_;
  std::unique_ptr<VerbsControl> control_;
  std::vector<std::unique_ptr<VerbsChannel>> channels_;
};

}  // namespace sdr::transport
