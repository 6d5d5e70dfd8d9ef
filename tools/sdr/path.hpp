// Path: what both ends must have alike before a QueuePair or Connection is made, and the words in which they agree.
//
//   client                                       server
//   Path::choose(options, session)
//   hello {"command": ..., "path": {...}}  ->    Path::accept(hello["path"], session, ...)
//   adopt(answer)                          <-    {"mtu": ..., ...}
//   connect_over(session, connection)     <->    connect_over(session, connection)      (session.hpp)
//
// The client decides everything but the MTU, which is the smaller of what the two ends can see of the path. What the
// server's user named all the same must be what the client says.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sdr/connection.hpp"
#include "sdr/device.hpp"
#include "sdr/options.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/session.hpp"
#include "simulation/link_spec.hpp"

namespace sdr::cli {

class Path {
 public:
  // The client's side: reads the options and looks at the path. InvalidArgument when --rate is needed and missing (by
  // scheme none, which has nobody to find it).
  static Result<Path> choose(const PathOptions& options, const Session& session);
  // The server's side: `from_peer` is the client's "path", `own` the server's options, UDP ports as in DeviceOptions.
  // Takes the smaller MTU; Mismatch when an option that the server was given says otherwise than the client. Errors are
  // for the client too: send them with Session::send_error().
  static Result<Path> accept(const Json& from_peer, const Session& session, const PathOptions& own,
                             std::uint16_t base_port);

  // What the client says in its hello, and what the server answers.
  [[nodiscard]] Json to_json() const;
  // The client takes the server's answer.
  Result<void> adopt(const Json& answer);

  [[nodiscard]] const DevicePtr& device() const { return device_; }
  [[nodiscard]] const SchemeChoice& scheme() const { return scheme_; }
  // A random token included: call it once for each Connection or QueuePair. The scheme must not be "none".
  [[nodiscard]] ConnectionOptions connection_options() const;
  [[nodiscard]] QueuePairOptions queue_pair_options() const;
  // This end's own affair: the peer is not told.
  void give_packets_to(OffloadPtr offload) { offload_ = std::move(offload); }

  [[nodiscard]] std::uint32_t mtu() const { return mtu_; }
  [[nodiscard]] std::uint32_t chunk_packets() const { return chunk_packets_; }
  [[nodiscard]] Bandwidth rate() const { return rate_; }  // zero: not limited, or to be found
  [[nodiscard]] bool emulated() const { return !link_.empty(); }
  [[nodiscard]] const std::string& link() const { return link_; }
  [[nodiscard]] const simulation::LinkSpec& link_spec() const { return link_spec_; }
  [[nodiscard]] Duration timeout() const { return timeout_; }

 private:
  Result<void> open(const PathOptions& where, const Session& session, std::uint16_t base_port, bool far_end);
  Result<void> choose_rate(const PathOptions& options, const Session& session);
  Result<void> set_mtu(std::uint32_t mtu);
  [[nodiscard]] Result<void> check_against(const PathOptions& own) const;

  DevicePtr device_;
  OffloadPtr offload_;
  SchemeChoice scheme_;
  std::uint32_t mtu_ = 0;
  bool mtu_given_ = false;
  std::string chunk_;
  std::uint32_t chunk_packets_ = 1;
  unsigned channels_ = 1;
  std::string link_;
  simulation::LinkSpec link_spec_;
  Bandwidth rate_;
  RateMode rate_mode_ = RateMode::Automatic;
  Bandwidth max_rate_;
  Duration timeout_{0};
};

// The command that a hello is for; Mismatch when it is not `expected`: `sdr send` met a `sdr perf --listen`, say.
Result<void> check_command(const Json& hello, std::string_view expected);

}  // namespace sdr::cli
