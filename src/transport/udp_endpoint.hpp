// UdpEndpoint: the Endpoint of UdpDevice.
//
// Data path. write() assembles headers and payloads of a run of packets (same channel, equal length, the last may be
// shorter) in a buffer that stays in the cache, and hands up to four runs of 64 KiB to the kernel in one call. poll()
// reads as many into the same buffer, checks each packet against the exposure table and copies its payload to its
// place. Both copies run out of the cache and measured faster than gathering and scattering by iovec. The buffer is the
// thread's: an endpoint's own memory is a few hundred bytes and 24 a slot.
//
// Exposure table. A slot's `state` is the last thing that expose() writes (release) and the first that poll() reads
// (seq_cst, see retract()): whoever sees the generation sees base and length that go with it. retract() clears it; that
// nobody is still placing is for the caller to wait for before it calls expose() again (transport.hpp, "late packets").
//
// Threads: as in transport.hpp. Counters have one writer each, and are read from anywhere.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "transport/transport.hpp"
#include "transport/udp.hpp"
#include "transport/udp_socket.hpp"
#include "transport/udp_wire.hpp"

namespace sdr::transport {

class UdpEndpoint final : public Endpoint {
 public:
  // Opens the sockets; `advertised` is the address that goes into info().
  static Result<std::unique_ptr<Endpoint>> open(const EndpointOptions& options, const UdpOptions& udp,
                                                const SocketAddress& bind_to, const SocketAddress& advertised);

  [[nodiscard]] const EndpointFacts& facts() const override { return facts_; }
  [[nodiscard]] EndpointCounters counters() const override;
  [[nodiscard]] std::vector<std::byte> info() const override;
  Result<void> connect(std::span<const std::byte> remote_info) override;
  [[nodiscard]] std::string peer_name() const override { return peer_name_; }

  Result<Aim> expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) override;
  void retract(core::SlotIndex slot) override;
  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now) override;

  std::size_t write(std::span<const Packet> packets, TimePoint now) override;
  [[nodiscard]] std::uint64_t writes_finished() const override;

  bool send_control(std::span<const std::byte> datagram, TimePoint now) override;
  std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now) override;

  void advance(TimePoint /*now*/) override {}
  [[nodiscard]] int channel_fd(core::ChannelIndex channel) const override {
    return channels_[channel.value].socket.fd();
  }
  [[nodiscard]] int control_fd() const override { return control_.fd(); }
  [[nodiscard]] TimePoint next_event() const override { return kNever; }

 private:
  // A number with one writer, who needs no atomic addition.
  class Count {
   public:
    void add(std::uint64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
    void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<std::uint64_t> value_{0};
  };

  // What happened to the datagrams of one poll(), or of one socket since it was opened.
  template <typename Number>
  struct Tally {
    Number received{}, bytes{}, wrong_token{}, malformed{}, out_of_range{}, not_exposed{}, bytes_dropped{}, overflow{},
        marked{}, calls{};
  };

  struct Exposure {
    std::byte* base = nullptr;
    std::uint64_t length = 0;
    std::atomic<std::uint32_t> state{0};  // kActive | generation, or 0
  };
  static constexpr std::uint32_t kActive = 0x100;

  struct alignas(64) Channel {
    UdpSocket socket;
    Tally<Count> tally;     // written by the thread that polls the channel
    Count dropped_by_host;  // in the kernel, before this socket's datagrams were read
  };

  explicit UdpEndpoint(const EndpointOptions& options);
  void describe(const SocketAddress& advertised);
  [[nodiscard]] Result<udp_wire::PeerInfo> compatible_peer(std::span<const std::byte> remote_info) const;
  [[nodiscard]] SegmentBatch assemble(std::span<const Packet> packets, std::span<std::byte> buffer) const;
  bool place(std::span<const std::byte> datagram, std::uint8_t channel, core::Completion& out,
             Tally<std::uint64_t>& tally);

  EndpointOptions options_;
  EndpointFacts facts_;
  std::uint64_t peer_token_ = 0;
  bool connected_ = false;
  SocketAddress advertised_;
  std::string peer_name_ = "nobody yet";
  UdpSocket control_;
  std::unique_ptr<Channel[]> channels_;
  std::unique_ptr<Exposure[]> exposures_;
  // Of the thread that drives the QP.
  Count packets_sent_, packets_lost_, send_calls_;
  Tally<Count> control_tally_;
};

}  // namespace sdr::transport
