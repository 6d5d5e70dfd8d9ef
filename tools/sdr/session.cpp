#include "sdr/session.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/clock.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kMagic = "SDRS";
constexpr std::size_t kHeader = 12;
// Deeper nesting than any message of ours; a peer's message is walked and copied by recursion.
constexpr int kMaxDepth = 16;

std::uint32_t load(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte b : bytes) value = value << 8 | std::to_integer<std::uint32_t>(b);
  return value;
}

void store(std::span<std::byte> bytes, std::uint32_t value) {
  for (std::size_t i = bytes.size(); i-- > 0; value >>= 8) bytes[i] = static_cast<std::byte>(value & 0xff);
}

Error protocol(std::string message) {
  return {ErrorCode::Protocol, std::move(message)};
}

template <typename T, typename Accepts>
Result<T> get(const Json& message, std::string_view field, std::string_view kind, Accepts accepts) {
  const auto at = message.find(field);
  if (at == message.end()) return protocol(fmt::format("the peer's message has no field \"{}\"", field));
  if (!accepts(*at)) {
    return protocol(
        fmt::format("the field \"{}\" of the peer's message is of type {}, not {}", field, at->type_name(), kind));
  }
  return at->template get<T>();
}

}  // namespace

Result<Session> Session::connect(const std::string& host_port, Duration patience) {
  const Result<SocketAddress> peer = parse_endpoint(host_port, false);
  if (!peer) return peer.error();
  Result<TcpSocket> socket = TcpSocket::connect(*peer, runtime::now() + patience);
  if (!socket) return socket.error();
  return Session(std::move(socket).value());
}

Result<void> Session::send(const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxFrame) {
    return protocol(fmt::format("a session message of {} bytes is longer than {}", text.size(), kMaxFrame));
  }
  std::vector<std::byte> frame(kHeader + text.size());
  const std::span<std::byte> bytes(frame);
  std::memcpy(frame.data(), kMagic.data(), kMagic.size());
  store(bytes.subspan(4, 2), kSessionVersion);
  store(bytes.subspan(8, 4), static_cast<std::uint32_t>(text.size()));
  std::memcpy(frame.data() + kHeader, text.data(), text.size());
  Result<void> sent = socket_.send(frame, runtime::now() + kSessionPatience);
  if (!sent) return Error{sent.error().code, fmt::format("{}: {}", peer_name(), sent.error().message)};
  return sent;
}

Result<Json> Session::receive(Duration patience) {
  const TimePoint deadline = runtime::now() + patience;
  for (;;) {
    Result<std::optional<Json>> message = poll();
    if (!message) return message.error();
    if (*message) return std::move(**message);
    if (!socket_.wait_readable(deadline)) {
      return Error{ErrorCode::PeerUnreachable, fmt::format("{} said nothing for {}{}", peer_name(), to_string(patience),
                                                           heard_ ? "" : ": it may be busy with another peer")};
    }
  }
}

Result<std::optional<Json>> Session::poll() {
  for (;;) {
    Result<std::optional<Json>> frame = take_frame();
    if (!frame || *frame) return frame;
    std::array<std::byte, 16384> buffer;
    const Result<std::size_t> n = socket_.receive(buffer);
    if (!n) {
      return Error{n.error().code, fmt::format("{}: {}", peer_name(), n.error().message)};
    }
    if (*n == 0) return std::optional<Json>();
    received_.insert(received_.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*n));
  }
}

void Session::send_error(std::string_view message) {
  (void)send({{"error", message}});
}

Result<void> Session::check_header() {
  const std::span<const std::byte> bytes(received_);
  // Garbage is refused by its first bytes, without waiting for more.
  const std::size_t known = std::min(bytes.size(), kMagic.size());
  if (std::memcmp(bytes.data(), kMagic.data(), known) != 0) {
    return protocol(fmt::format("{} does not speak the sdr session protocol", peer_name()));
  }
  if (bytes.size() < kHeader) return {};
  heard_ = true;
  if (const std::uint32_t version = load(bytes.subspan(4, 2)); version != kSessionVersion) {
    send_error("");  // whose header has our version
    return Error{ErrorCode::Mismatch, fmt::format("{} speaks version {} of the session protocol, this sdr version {}",
                                                  peer_name(), version, kSessionVersion)};
  }
  if (const std::uint32_t length = load(bytes.subspan(8, 4)); length > kMaxFrame) {
    return protocol(fmt::format("a session message of {} bytes is longer than {}", length, kMaxFrame));
  }
  return {};
}

Result<std::optional<Json>> Session::take_frame() {
  if (received_.empty()) return std::optional<Json>();
  if (Result<void> valid = check_header(); !valid) return valid.error();
  if (received_.size() < kHeader) return std::optional<Json>();
  const std::size_t length = load(std::span<const std::byte>(received_).subspan(8, 4));
  if (received_.size() < kHeader + length) return std::optional<Json>();
  const auto* text = reinterpret_cast<const char*>(received_.data() + kHeader);
  bool too_deep = false;
  const auto shallow = [&too_deep](int depth, Json::parse_event_t, const Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  Json message = Json::parse(text, text + length, shallow, false);
  received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(kHeader + length));
  if (too_deep) return protocol(fmt::format("{} sent a message nested deeper than {}", peer_name(), kMaxDepth));
  if (!message.is_object()) return protocol(fmt::format("{} sent a message that is not a JSON object", peer_name()));
  if (const auto error = message.find("error"); error != message.end() && error->is_string()) {
    return Error{ErrorCode::Mismatch,
                 fmt::format("{} says: {}", peer_name(), printable(error->get_ref<const std::string&>()))};
  }
  return std::optional<Json>(std::move(message));
}

Result<TcpListener> open_listener(const std::string& at) {
  const Result<SocketAddress> address = parse_endpoint(at, true);
  if (!address) return address.error();
  Result<TcpListener> listener = TcpListener::open(*address);
  if (!listener) return listener;
  const std::uint16_t port = listener->local().port();
  if (port == UINT16_MAX) {
    return Error{ErrorCode::InvalidArgument, fmt::format("{} leaves no port above it for the data", at)};
  }
  fmt::print(stderr, "listening on {} (TCP {}; UDP {} for control, from {} on for data)\n",
             listener->local().to_string(), port, port, port + 1);
  return listener;
}

Result<std::uint64_t> get_number(const Json& message, std::string_view field) {
  return get<std::uint64_t>(message, field, "a whole number", [](const Json& v) { return v.is_number_unsigned(); });
}
Result<double> get_real(const Json& message, std::string_view field) {
  return get<double>(message, field, "a number", [](const Json& v) { return v.is_number(); });
}
Result<std::string> get_text(const Json& message, std::string_view field) {
  return get<std::string>(message, field, "a text", [](const Json& v) { return v.is_string(); });
}
Result<bool> get_flag(const Json& message, std::string_view field) {
  return get<bool>(message, field, "true or false", [](const Json& v) { return v.is_boolean(); });
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<std::size_t>(b >> 4)];
    text += kDigits[std::to_integer<std::size_t>(b & std::byte{15})];
  }
  return text;
}

Result<std::vector<std::byte>> from_hex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const std::size_t high = kDigits.find(text[i]);
    const std::size_t low = kDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) break;
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  if (bytes.size() * 2 != text.size()) return protocol("the peer's info is not hexadecimal text");
  return bytes;
}

}  // namespace sdr::cli
