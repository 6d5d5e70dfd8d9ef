// Options that several subcommands share, as texts from the command line, and how each is read.
//
// CLI11 checks every text while it parses (wrong usage: exit code 2), so that the read_...() functions find only good
// ones; what depends on the peer or the path is decided later, in path.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sdr/connection.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

// CLI11 is slow to compile: only files that declare options include it.
namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace sdr::cli {

// How bytes are to get there.
struct PathOptions {
  std::string transport = "udp";
  std::string device;  // address, interface or RDMA device; empty: the address that the session's TCP connection took
  std::string gid;     // of an RDMA device: "auto", or an index in its table
  std::string link;
  std::string rate;            // empty: see path.hpp; "auto": to be found
  std::string max_rate;        // of what is found; empty: no limit
  bool background = false;     // yield to everybody else
  std::string mtu = "auto";    // payload bytes of a packet
  std::string chunk = "auto";  // bytes, "16p", or auto: kDefaultChunkPackets
  unsigned channels = 0;       // 0: 1
  std::string scheme;          // perhaps with ":k:m"; empty: kDefaultScheme
  unsigned k = 0;              // 0: as in the scheme
  unsigned m = 0;
  std::string timeout = "10s";
};

inline constexpr std::string_view kDefaultScheme = "adaptive";
inline constexpr std::uint32_t kDefaultChunkPackets = 1;
inline constexpr unsigned kMaxChannels = 64;

// The options of the side that decides (the client, the sender).
void add_path_options(CLI::App& app, PathOptions& options, bool with_scheme_none);
// Parts of it.
void add_scheme_options(CLI::App& app, PathOptions& options, bool with_scheme_none);
void add_chunk_option(CLI::App& app, PathOptions& options);
void add_mtu_option(CLI::App& app, PathOptions& options, const std::string& what_auto_is);
// --transport, --device and --gid, all there is for the side that follows.
void add_device_options(CLI::App& app, PathOptions& options);

// Checks for CLI::Option::check(). They add nothing to the help; type_name() says what an option takes.
CLI::Validator size_text();
CLI::Validator rate_text();
CLI::Validator duration_text();
// For CLI::Option::transform(): puts a recorded trace in the place of its file's name (link_trace.hpp).
CLI::Validator link_text();
CLI::Validator endpoint_text(bool any_port);
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

// A scheme as it is written: "none", "adaptive", "sr-rto", "sr-nack", "ec-xor", "ec-rs", the erasure codes also as
// "ec-rs:32:8".
struct SchemeChoice {
  std::optional<Scheme> scheme;  // nothing: "none", the bare SDK
  int data_chunks = 32;
  int parity_chunks = 8;

  // One with k and m.
  [[nodiscard]] bool coded() const { return scheme == Scheme::EcXor || scheme == Scheme::EcRs; }
  // One that encodes and decodes.
  [[nodiscard]] bool has_parity() const { return coded() || scheme == Scheme::Adaptive; }
  // "ec-rs:32:8", "sr-nack", "none".
  [[nodiscard]] std::string text() const;
  // "scheme", "k" and "m" of a report.
  void add_to(Json& json) const;
};
// `with_none` says whether "none" will do.
Result<SchemeChoice> parse_scheme_choice(std::string_view text, bool with_none);
// What --scheme, --k and --m come to together.
Result<SchemeChoice> scheme_of(const PathOptions& options);

// How many packets make a chunk of `text` ("auto", "64KiB", "16p") at this MTU; Mismatch names the nearest sizes
// that are possible.
Result<std::uint32_t> packets_per_chunk(std::string_view text, std::uint32_t mtu);

}  // namespace sdr::cli
