// ProbeSockets: the UDP sockets of one end of `sdr probe`: number 0 for echoes, number 1 + i for flow i, each connected
// to its counterpart.
//
// Sending: a batch that the host has no room for is not taken, and may be offered again with the same numbers. That
// includes a full queue below the socket: a socket that wants the errors of the path (IP_RECVERR) is told of one,
// others are not. Receiving: without UDP_GRO, because the kernel counts a coalesced batch that it drops as one.
//
// Threads: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sdr/result.hpp"
#include "sdr/units.hpp"
#include "transport/udp_address.hpp"
#include "transport/udp_socket.hpp"

namespace sdr::cli {

class ProbeSockets {
 public:
  // On `base_port` and those above it, or any when it is 0.
  static Result<ProbeSockets> open(const transport::SocketAddress& local, std::uint32_t flows, std::uint16_t base_port);
  // To the peer's sockets, in the same order.
  Result<void> connect(const transport::SocketAddress& peer, std::span<const std::uint16_t> ports);

  [[nodiscard]] std::vector<std::uint16_t> ports() const;
  // Once connected: of the path, IP header included.
  [[nodiscard]] Result<std::uint32_t> path_mtu() const { return sockets_[0].path_mtu(); }
  // The smallest receive buffer of a flow.
  [[nodiscard]] std::uint32_t receive_buffer() const;

  // How many packets of the front of the batch the host took.
  std::size_t send(std::size_t socket, const transport::SegmentBatch& batch);
  // Packets that the host would not send, for other reasons than a full queue; they may be offered again.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

  struct Batch {
    std::span<const std::span<const std::byte>> datagrams;
    std::uint32_t dropped = 0;  // at this socket for want of room, when the last of them came
  };
  // What is waiting, up to what one system call brings; valid until the next call.
  Batch receive(std::size_t socket);

  // Waits until one of the sockets of echoes, or of all if `flows`, or `other`, is readable, or the deadline has come.
  // Numbers of the readable sockets; `other_ready` says of `other`.
  std::span<const std::size_t> wait(int other, bool flows, TimePoint deadline, bool& other_ready);

 private:
  std::vector<transport::UdpSocket> sockets_;
  std::vector<std::byte> buffer_;
  std::array<std::span<const std::byte>, transport::UdpSocket::kMaxReceived> datagrams_;
  std::vector<std::size_t> ready_;
  std::uint64_t refused_ = 0;
};

}  // namespace sdr::cli
