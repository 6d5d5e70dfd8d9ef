// VerbsControl: the control path, datagrams over one unreliable datagram (UD) queue pair.
//
// A datagram carries the receiver's token in front; the NIC puts 40 bytes of room for a global route header (GRH)
// before what it receives. Buffers are fixed, registered once, and given back to the NIC as soon as their datagram was
// copied out. A datagram that finds no buffer, here or there, is lost.
//
// Threads: the one that drives the endpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/transport.hpp"
#include "transport/verbs_events.hpp"
#include "transport/verbs_memory.hpp"
#include "transport/verbs_queue_pair.hpp"
#include "transport/verbs_wire.hpp"

namespace sdr::transport {

class VerbsControl {
 public:
  // With the token in front it fits the least MTU that a port may have.
  static constexpr std::uint16_t kMaxControl = VerbsPort::kLeastMtu - verbs_wire::kControlHeader;

  static Result<std::unique_ptr<VerbsControl>> make(const VerbsPort& port, std::uint64_t token, VerbsEvents& events);

  [[nodiscard]] std::uint32_t number() const { return queue_pair_->qp_num; }
  [[nodiscard]] std::uint32_t qkey() const { return qkey_; }

  struct Peer {
    std::uint32_t number = 0;
    std::uint32_t qkey = 0;
    std::uint64_t token = 0;
  };
  // May be called again after a failure.
  Result<void> connect(const VerbsPort& port, const VerbsPath& path, const Peer& peer);

  bool send(std::span<const std::byte> datagram);
  // The next datagram that carries our token.
  std::optional<std::size_t> receive(std::span<std::byte> into);
  // Arms the queue of received datagrams; true when it must be looked at once more.
  bool arm() { return received_->arm(); }

  [[nodiscard]] ibv_wc_status failure() const { return failure_; }
  void add_counters(EndpointCounters& sum) const;

 private:
  static constexpr std::uint32_t kSends = 64;
  static constexpr std::uint32_t kReceives = 256;
  static constexpr std::size_t kGrh = 40;
  static constexpr std::size_t kSendRoom = VerbsPort::kLeastMtu;
  static constexpr std::size_t kReceiveRoom = kGrh + VerbsPort::kLeastMtu;

  VerbsControl(std::uint64_t token, VerbsEvents& events)
      : token_(token), events_(events), memory_(kSends * kSendRoom + kReceives * kReceiveRoom) {}
  [[nodiscard]] std::span<std::byte> send_buffer(std::uint64_t n) {
    return std::span(memory_).subspan(n % kSends * kSendRoom, kSendRoom);
  }
  [[nodiscard]] std::span<std::byte> receive_buffer(std::uint64_t n) {
    return std::span(memory_).subspan(kSends * kSendRoom + n * kReceiveRoom, kReceiveRoom);
  }
  Result<void> to_ready(const VerbsPort& port);
  void post_receive(std::uint32_t buffer);
  void reap_sends();
  void fail(ibv_wc_status why);

  std::uint64_t token_;
  std::uint32_t qkey_ = 0;
  VerbsEvents& events_;
  std::vector<std::byte> memory_;
  VerbsRegion region_;
  verbs::CompletionQueue sent_;
  std::unique_ptr<WakingQueue> received_;
  verbs::QueuePair queue_pair_;
  verbs::AddressHandle address_;
  Peer peer_;
  std::uint64_t life_ = 0;  // how often connected
  std::uint64_t posted_ = 0;
  std::uint64_t finished_ = 0;
  ibv_wc_status failure_ = IBV_WC_SUCCESS;
  std::atomic<std::uint64_t> wrong_token_{0}, malformed_{0}, calls_{0};
};

}  // namespace sdr::transport
