// sdr recv: takes what sdr send sends, one sender after another, into a directory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sdr/file_receiver.hpp"
#include "sdr/file_store.hpp"
#include "sdr/options.hpp"
#include "sdr/path.hpp"
#include "sdr/report.hpp"
#include "sdr/session.hpp"
#include "sdr/subcommands.hpp"
#include "sdr/tcp_socket.hpp"
#include "sdr/transfer_end.hpp"

namespace sdr::cli {

namespace {

constexpr const char* kName = "recv";

constexpr const char* kExamples = R"(Examples:
  sdr recv --listen 0.0.0.0:7000 --into incoming
  sdr recv --listen [::]:7000 --into incoming --once --json
Files appear under their names when they are complete and their SHA-256 is the sender's, not before. Whoever can reach
the port can write into the directory: there is no authentication.)";

struct RecvOptions {
  std::string listen;
  std::string into;
  bool once = false;
  bool json = false;
  PathOptions path;  // transport, device and timeout of it
};

Result<Path> agree(Session& session, const RecvOptions& options, Duration timeout, std::uint16_t base_port) {
  const auto refuse = [&](const Error& error) {
    session.send_error(error.message);
    return error;
  };
  const Result<Json> hello = session.receive(std::min(timeout, kHelloPatience));
  if (!hello) return hello.error().code == ErrorCode::Mismatch ? hello.error() : refuse(hello.error());
  if (Result<void> ours = check_command(*hello, "send"); !ours) return refuse(ours.error());
  Result<Path> path = Path::accept(hello->value("path", Json::object()), session, options.path, base_port);
  if (!path) return refuse(path.error());
  if (!path->scheme().scheme) return refuse({ErrorCode::Protocol, "files are not sent with scheme none"});
  if (Result<void> sent = session.send({{"mtu", path->mtu()}}); !sent) return sent.error();
  return path;
}

int serve(Session& session, const RecvOptions& options, FileStore& store, const Interrupt& interrupt,
          std::uint16_t base_port) {
  const Duration timeout = *parse_duration(options.path.timeout);
  TransferProgress progress(stderr, options.json);
  TransferRecord record(progress, options.json);
  record.peer = session.peer().to_string();
  const Result<Path> path = agree(session, options, timeout, base_port);
  if (!path) {
    end_session(session, "");  // a refusal is said already
    return record.conclude(kName, path.error(), nullptr);
  }
  const Result<void> result =
      run_transfer(session, *path, timeout, interrupt, progress, record,
                   [&](TransferLoop& loop) { return std::make_unique<FileReceiver>(store, loop, record); });
  return record.conclude(kName, result, path->to_json());
}

int run_recv(const RecvOptions& options) {
  Result<FileStore> store = FileStore::open(options.into);
  if (!store) return complain(kName, store.error());
  // Before anybody is told that there is somebody to be ended.
  const Interrupt interrupt;
  Result<TcpListener> listener = open_listener(options.listen);
  if (!listener) return complain(kName, listener.error());
  std::signal(SIGXFSZ, SIG_IGN);  // a file larger than the limit is an error of that file, not the end of the program
  for (;;) {
    std::optional<Result<TcpSocket>> socket = listener->accept(interrupt.fd());
    if (!socket) return options.once ? complain(kName, {ErrorCode::System, "interrupted before anyone sent"}) : kDone;
    if (!*socket) {
      const int code = complain(kName, socket->error());
      if (socket->error().code == ErrorCode::PeerUnreachable) continue;
      return code;
    }
    Session session(std::move(*socket).value());
    const int code = serve(session, options, *store, interrupt, listener->local().port());
    if ((options.once && session.heard()) || Interrupt::caught() != nullptr) return code;
  }
}

}  // namespace

void add_recv(CLI::App& app, Run& run) {
  CLI::App* recv = app.add_subcommand("recv", "Receive files and directories from sdr send");
  recv->footer(kExamples);
  const auto options = std::make_shared<RecvOptions>();
  recv->add_option("--listen", options->listen, "ADDR:PORT to wait at (port 0: any)")
      ->required()
      ->check(endpoint_text(true));
  recv->add_option("--into", options->into, "Directory that receives; made if it is not there")->required();
  recv->add_flag("--once", options->once, "End after one sender");
  recv->add_flag("--json", options->json, "Report in JSON, one object a sender");
  recv->add_option("--timeout", options->path.timeout, "Give up on a sender that was silent for this long")
      ->check(duration_text())
      ->capture_default_str();
  add_device_options(*recv, options->path);
  recv->callback([options, &run] { run = [options] { return run_recv(*options); }; });
}

}  // namespace sdr::cli
