// TwoEnds: a command that measures between two ends, run as one of them (HOST:PORT), as the other (--listen) or as both
// (--self): the client decides what is done, the server serves one client after another.
//
// Threads: one. With --self the server is a child process; whoever of the two dies takes the other along.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sdr/session.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace sdr::cli {

struct TwoEndsOptions {
  std::string listen;
  std::string peer;
  bool self = false;
  bool once = false;
  bool json = false;

  [[nodiscard]] bool listens() const { return !listen.empty(); }
};

void add_two_ends_options(CLI::App& app, TwoEndsOptions& options);

struct TwoEnds {
  std::string_view name;  // of the subcommand
  // Towards "HOST:PORT"; the exit code.
  std::function<int(const std::string& peer)> client;
  // One client. Its data comes in on the ports behind `base_port` (0: any). Says on stdout what came of it, unless
  // `quiet`; an error is told to the client and to stderr by who calls this.
  std::function<Result<void>(Session&, std::uint16_t base_port, bool quiet)> serve;
};

// The exit code. InvalidArgument unless `options` name one way of the three.
int run_two_ends(const TwoEnds& ends, const TwoEndsOptions& options);

}  // namespace sdr::cli
