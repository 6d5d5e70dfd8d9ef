#include "sdr/two_ends.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include "sdr/child_process.hpp"
#include "sdr/options.hpp"

namespace sdr::cli {
namespace {

// One client; its error is for stderr, and not the end of the listener. Nothing when whoever connected does not speak
// the protocol.
std::optional<int> serve_one(const TwoEnds& ends, TcpListener& listener, std::uint16_t base_port, bool quiet) {
  Result<TcpSocket> socket = *listener.accept();
  if (!socket) {
    const int code = complain(ends.name, socket.error());
    return socket.error().code == ErrorCode::PeerUnreachable ? std::nullopt : std::optional(code);
  }
  Session session(std::move(socket).value());
  const Result<void> served = ends.serve(session, base_port, quiet);
  if (served) return kDone;
  if (session.heard()) session.send_error(served.error().message);
  if (!quiet) complain(ends.name, served.error());
  return session.heard() ? std::optional(kFailed) : std::nullopt;
}

int run_server(const TwoEnds& ends, const TwoEndsOptions& options) {
  Result<TcpListener> listener = open_listener(options.listen);
  if (!listener) return complain(ends.name, listener.error());
  for (;;) {
    const std::optional<int> code = serve_one(ends, *listener, listener->local().port(), false);
    if (options.once && code) return *code;
  }
}

int run_both(const TwoEnds& ends) {
  Result<TcpListener> listener = TcpListener::open(*parse_endpoint("127.0.0.1:0", true));
  if (!listener) return complain(ends.name, listener.error());
  Result<ChildProcess> server =
      ChildProcess::start([&] { return serve_one(ends, *listener, 0, true).value_or(kFailed); });
  if (!server) return complain(ends.name, server.error());
  return ends.client(listener->local().to_string());
}

}  // namespace

void add_two_ends_options(CLI::App& app, TwoEndsOptions& options) {
  app.add_option("peer", options.peer, fmt::format("A listening sdr {}", app.get_name()))
      ->check(endpoint_text(false))
      ->type_name("HOST:PORT");
  app.add_option("--listen", options.listen, "Serve one client after another, as they ask (port 0: any)")
      ->check(endpoint_text(true))
      ->type_name("ADDR:PORT");
  app.add_flag("--self", options.self, "Run both ends here, as two processes over loopback");
  app.add_flag("--once", options.once, "With --listen: end after one client");
  app.add_flag("--json", options.json, "Report in JSON");
}

int run_two_ends(const TwoEnds& ends, const TwoEndsOptions& options) {
  const auto ways = std::array{options.self, options.listens(), !options.peer.empty()};
  if (std::count(ways.begin(), ways.end(), true) != 1) {
    return complain(ends.name,
                    {ErrorCode::InvalidArgument,
                     fmt::format("one of HOST:PORT, --listen ADDR:PORT and --self is needed, and no more (see sdr {} "
                                 "--help)",
                                 ends.name)});
  }
  try {
    if (options.self) return run_both(ends);
    return options.listens() ? run_server(ends, options) : ends.client(options.peer);
  } catch (const std::bad_alloc&) {
    return complain(ends.name, {ErrorCode::System, "out of memory"});
  }
}

}  // namespace sdr::cli
