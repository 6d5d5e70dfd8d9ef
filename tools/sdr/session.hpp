// Session: what two sdr commands say to each other beside the data, over TCP: who they are, what both must agree on,
// the infos that connect a QueuePair or Connection, and how it went.
//
// Model: messages are JSON objects, each in a frame of its own:
//
//   0   magic "SDRS"     4 bytes
//   4   version          u16        of the frames and of what is said in them
//   6   zero             u16
//   8   length           u32        of the JSON text, at most kMaxFrame
//   12  JSON
//
// in network byte order. The version rides in every frame: a peer of another version is told apart by its first one,
// and is answered, so that its user learns it too. An object with an "error" ends the session with that text.
//
// Bounds: every wait has a deadline; a peer that says nothing, or says it too slowly, is an error. A TCP connection
// that ends is a peer that is gone.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/tcp_socket.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

inline constexpr std::uint16_t kSessionVersion = 1;
inline constexpr std::uint32_t kMaxFrame = 4U << 20;
// How long a peer may take to connect, or to say what it has at hand.
inline constexpr Duration kSessionPatience = std::chrono::seconds(5);
// How long a listener waits for the first message of who connected, before it turns to the next.
inline constexpr Duration kHelloPatience = TcpListener::kSilence;

class Session {
 public:
  // To "HOST:PORT".
  static Result<Session> connect(const std::string& host_port, Duration patience = kSessionPatience);
  explicit Session(TcpSocket socket) : socket_(std::move(socket)), peer_(socket_.peer()) {}

  Result<void> send(const Json& message);
  // The next message. An object with an "error" is that Error; its code is Mismatch, whatever it was over there.
  Result<Json> receive(Duration patience = kSessionPatience);
  // The next message if it is here already; for use beside a Driver that watches fd().
  Result<std::optional<Json>> poll();
  // Tells the peer why it ends. Best effort.
  void send_error(std::string_view message);

  // Whether the peer has spoken this protocol, of whatever version: a scanner or a silent one is nobody's client.
  [[nodiscard]] bool heard() const { return heard_; }

  [[nodiscard]] int fd() const { return socket_.fd(); }
  // The two ends, without ports in mind: the data takes the same addresses.
  [[nodiscard]] SocketAddress local() const { return socket_.local(); }
  // Known from the start: a socket whose peer is gone has forgotten it.
  [[nodiscard]] SocketAddress peer() const { return peer_; }
  [[nodiscard]] bool same_machine() const { return peer().is_local(); }

 private:
  Result<std::optional<Json>> take_frame();
  Result<void> check_header();
  [[nodiscard]] std::string peer_name() const { return peer_.size() > 0 ? peer_.to_string() : "the other end"; }

  TcpSocket socket_;
  SocketAddress peer_;
  bool heard_ = false;
  std::vector<std::byte> received_;
};

// Listens at "ADDR:PORT" and says so on stderr: stdout has what the subcommand reports.
Result<TcpListener> open_listener(const std::string& at);

// Fields of a peer's message: Protocol error that names the field when it is missing or not of that type.
Result<std::uint64_t> get_number(const Json& message, std::string_view field);
Result<double> get_real(const Json& message, std::string_view field);
Result<std::string> get_text(const Json& message, std::string_view field);
Result<bool> get_flag(const Json& message, std::string_view field);

// Bytes as hexadecimal text.
std::string to_hex(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> from_hex(std::string_view text);

// Swaps infos with the peer and connects: `End` is a QueuePair or a Connection. Both sides call it at the same point.
template <typename End>
Result<void> connect_over(Session& session, End& end) {
  if (Result<void> sent = session.send({{"info", to_hex(end.info())}}); !sent) return sent;
  const Result<Json> answer = session.receive();
  if (!answer) return answer.error();
  const Result<std::string> text = get_text(*answer, "info");
  if (!text) return text.error();
  const Result<std::vector<std::byte>> info = from_hex(*text);
  if (!info) return info.error();
  Result<void> connected = end.connect(*info);
  if (!connected) session.send_error(connected.error().message);
  return connected;
}

}  // namespace sdr::cli
