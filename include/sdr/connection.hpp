// Connection: reliable Writes over a QueuePair, with a choice of reliability scheme (paper section 4).
//
// Model: the n-th posted Write fills the n-th posted receive of the peer, exactly, or ends in an error. A Write is
// complete when the peer is known to hold every byte. Many Writes may be in flight; each of any size. Completions are
// taken from two queues, one for Writes and one for receives, like those of a NIC: every posted operation gives exactly
// one completion, an error included.
//
// Time: nothing here reads a clock or sleeps. progress(now) does what is due and says when it wants to be called next;
// between calls a driver may sleep on wait_fds(). sdr/driver.hpp has one that does.
//
// Threads: one thread at a time. Erasure coding runs on the Executor given at creation.
//
// Bounds: when nothing is heard from the peer for peer_timeout while an operation is under way, the connection fails:
// every operation completes with ErrorCode::PeerUnreachable, whose message says which peer, how long, how far it came.
//
// Source: paper sections 4.1 and 5; docs/reliability.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdr/device.hpp"
#include "sdr/executor.hpp"
#include "sdr/link_estimator.hpp"
#include "sdr/path_rate.hpp"
#include "sdr/queue_pair.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr {

enum class Scheme : std::uint8_t {
  SrRto = 1,     // selective repeat, a timeout of rto_factor * RTT a chunk
  SrNack = 2,    // selective repeat, the receiver names what is missing
  EcXor = 3,     // erasure coding with XOR parity, selective repeat as fallback
  EcRs = 4,      // erasure coding with Reed-Solomon parity, selective repeat as fallback
  Adaptive = 5,  // selective repeat, and parity for the last round trip of a Write, made for the loss that was seen
};
// "sr-rto", "sr-nack", "ec-xor", "ec-rs", "adaptive". The error lists them.
Result<Scheme> parse_scheme(std::string_view name);
std::string_view to_string(Scheme scheme);

struct ConnectionOptions {
  Scheme scheme = Scheme::Adaptive;
  int data_chunks = 32;         // k of the erasure codes; the adaptive scheme chooses its own
  int parity_chunks = 8;        // m
  double repair_target = 1e-5;  // adaptive: chance of a second round trip that the parity leaves, above 0 and below 1
  // Adaptive: parity chunks per data chunk of the tail at most, 0 to 1 (a quarter while other Writes wait). 8 chunks
  // always may be, and with 1 whatever takes less than a 256th of the RTT.
  double max_overhead = 1.0;
  std::shared_ptr<LinkEstimator> link;  // shared with other connections to this peer; null: its own
  // How fast to send. Automatic: queue_pair.rate if there is one, otherwise a controller finds the rate of the path.
  RateMode rate_mode = RateMode::Automatic;
  Bandwidth max_rate{};                 // never faster than this, whatever a controller finds; zero: no such limit
  std::shared_ptr<PathRate> path_rate;  // shared with other connections to this peer; null: its own, if it needs one
  QueuePairOptions queue_pair;  // mtu, chunk, rate, slots ...; max_message is the largest single transfer of a Write
  double rto_factor = 3.0;      // SR RTO: timeout in RTTs (the paper evaluates 3)
  double reorder_tolerance = 1.0 / 16;  // how long a gap may be reordering, in RTTs
  Duration peer_timeout = std::chrono::seconds(10);
  Bytes posted_ahead = 1_GiB;  // how much receive memory is announced to the peer at a time, at least two transfers
  std::uint32_t max_outstanding = 1024;  // Writes, and receives, posted whose completion has not been taken
};

struct ConnectionStatistics {
  std::uint64_t writes_completed = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t receives_completed = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_lost = 0;  // not landed at the peer by its latest word; on a local path: its socket's drops
  std::uint64_t packets_received = 0;
  std::uint64_t duplicate_packets = 0;
  std::uint64_t late_packets = 0;  // of completed receives; dropped here
  std::uint64_t host_drops = 0;    // by this host's sockets
  std::uint64_t chunks_sent = 0;   // data chunks, first transmissions
  std::uint64_t chunks_retransmitted = 0;
  std::uint64_t parity_chunks_sent = 0;
  std::uint64_t chunks_recovered = 0;  // missing at this receiver and rebuilt from parity
  std::uint64_t fallbacks = 0;         // transfers whose parity did not suffice at this receiver
  std::uint64_t controls_sent = 0;
  std::uint64_t controls_received = 0;
  std::uint64_t controls_malformed = 0;
  std::uint64_t send_calls = 0;  // system calls
  std::uint64_t receive_calls = 0;
  Duration rtt_smoothed{0};
  Duration rtt_min{0};
  double loss_estimate = 0;  // packets_lost / packets_sent
  Duration time_lost{0};     // Writes' waiting beyond their last first transmission plus one RTT
  RateStatus rate;           // of the path; pace and in_flight are this connection's
};

struct WriteHandle {
  std::uint64_t number = 0;
};
struct ReceiveHandle {
  std::uint64_t number = 0;
};
struct WriteCompletion {
  WriteHandle handle;
  std::uint64_t length = 0;
  TimePoint at{};              // when the acknowledgement came
  std::optional<Error> error;  // the peer may hold any part of it
};
struct ReceiveCompletion {
  ReceiveHandle handle;
  std::uint64_t length = 0;                // of the Write that filled it
  std::optional<std::uint32_t> immediate;  // if the Write carried one
  TimePoint at{};
  std::optional<Error> error;
};

// How far the oldest receive that is not complete has come without a gap.
struct LandedPrefix {
  ReceiveHandle handle;
  std::uint64_t bytes = 0;
};

class Connection {
 public:
  // `executor` encodes and decodes; null: in the calling thread.
  static Result<std::unique_ptr<Connection>> create(DevicePtr device, const ConnectionOptions& options,
                                                    std::shared_ptr<Executor> executor = nullptr);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The application carries info() to the peer's connect(), once. Mismatch names the field and both values.
  [[nodiscard]] std::vector<std::byte> info() const;
  Result<void> connect(std::span<const std::byte> remote_info);

  // Retry: max_outstanding reached. Closed: the connection has failed. The memory must stay until the completion.
  // A Write that is larger than the receive it meets completes with InvalidArgument and both lengths; nothing is sent
  // and the receive stays for the next Write.
  Result<WriteHandle> post_write(std::span<const std::byte> data,
                                 std::optional<std::uint32_t> immediate = std::nullopt);
  Result<ReceiveHandle> post_receive(std::span<std::byte> buffer);
  std::optional<WriteCompletion> poll_write();
  std::optional<ReceiveCompletion> poll_receive();

  // Does what is due. Returns when it wants to be called again (at once if <= now); kNever: only a packet or a post.
  TimePoint progress(TimePoint now);
  // Descriptors that become readable when there is something to do.
  [[nodiscard]] std::vector<int> wait_fds() const;

  // True once the peer has answered: the RTT is measured and full-size packets are known to pass.
  [[nodiscard]] bool ready() const;
  // True when nothing is under way: our Writes are acknowledged, and the peer has our final acknowledgements. A
  // receiver that goes away earlier may leave its peer asking.
  [[nodiscard]] bool settled() const;
  // Bytes of Writes that the peer is known to hold, of the oldest unfinished Write: for progress displays.
  [[nodiscard]] std::uint64_t bytes_acknowledged() const;
  // The front of the oldest receive under way that has landed (whole chunks): these bytes are the Write's, and can be
  // read before its completion. The prefix of one receive only grows. Nothing when no receive is posted.
  [[nodiscard]] std::optional<LandedPrefix> landed_prefix() const;
  // Bytes of the receives under way that have landed (whole chunks).
  [[nodiscard]] std::uint64_t bytes_landed() const;
  // Why the connection has failed, if it has.
  [[nodiscard]] const std::optional<Error>& failure() const;
  [[nodiscard]] ConnectionStatistics statistics() const;
  // What has been learned of the path towards the peer.
  [[nodiscard]] LinkEstimate link() const;
  [[nodiscard]] const QueuePairGeometry& geometry() const;
  // See QueuePair::offload_failure(): no failure of the connection.
  [[nodiscard]] std::optional<Error> offload_failure() const;
  [[nodiscard]] std::string peer_name() const;
  [[nodiscard]] bool local_path() const;
  // Of a connection with a fixed rate.
  void set_rate(Bandwidth rate);

 private:
  class Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdr
