// sdr send: files and directories to an sdr recv.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sdr/file_manifest.hpp"
#include "sdr/file_sender.hpp"
#include "sdr/options.hpp"
#include "sdr/path.hpp"
#include "sdr/report.hpp"
#include "sdr/session.hpp"
#include "sdr/subcommands.hpp"
#include "sdr/transfer_end.hpp"

namespace sdr::cli {

namespace {

constexpr const char* kName = "send";

constexpr const char* kExamples = R"(Examples:
  sdr send results.tar backup.example.org:7000 --rate 1Gbit
  sdr send photos/ notes.txt 192.0.2.7:7000 --rate 400Mbit --scheme ec-rs
  sdr send big.iso 192.0.2.7:7000            finds the rate, and shares the path
  sdr send checkpoint/ 192.0.2.7:7000 --background --max-rate 500Mbit
  sdr send big.iso 127.0.0.1:7000 --link rtt=50ms,rate=1Gbit,loss=1e-2
Every file is checked with SHA-256 at the other end. What was interrupted goes on where it was: give the same command
again.)";

struct SendOptions {
  std::vector<std::string> arguments;  // PATH... HOST:PORT
  bool json = false;
  PathOptions path;
};

std::vector<FileEntry> entries_of(const std::vector<SourceFile>& sources) {
  std::vector<FileEntry> entries;
  entries.reserve(sources.size());
  for (const SourceFile& source : sources) entries.push_back(source.entry);
  return entries;
}

Result<Path> agree(Session& session, const SendOptions& options) {
  Result<Path> path = Path::choose(options.path, session);
  if (!path) return path.error();
  if (Result<void> sent = session.send({{"command", kName}, {"path", path->to_json()}}); !sent) return sent.error();
  // The receiver may be busy with another transfer.
  const Result<Json> answer = session.receive(path->timeout());
  if (!answer) return answer.error();
  if (Result<void> adopted = path->adopt(*answer); !adopted) return adopted.error();
  return path;
}

int run_send(const SendOptions& options) {
  const std::string& peer = options.arguments.back();
  if (const Result<SocketAddress> endpoint = parse_endpoint(peer, false); !endpoint) {
    return complain(kName, endpoint.error());
  }
  const auto sources = scan_sources(std::span(options.arguments.data(), options.arguments.size() - 1));
  if (!sources) return complain(kName, sources.error());
  Result<Session> session = Session::connect(peer, std::min(kSessionPatience, *parse_duration(options.path.timeout)));
  if (!session) return complain(kName, session.error());
  const Result<Path> path = agree(*session, options);
  if (!path) return complain(kName, path.error());

  const Interrupt interrupt;
  TransferProgress progress(stderr, options.json);
  TransferRecord record(progress, options.json);
  record.set_entries(entries_of(*sources));
  const Result<void> result =
      run_transfer(*session, *path, path->timeout(), interrupt, progress, record, [&](TransferLoop& loop) {
        auto sender = std::make_unique<FileSender>(*sources, loop, record);
        sender->begin();
        return sender;
      });
  return record.conclude(kName, result, path->to_json());
}

}  // namespace

void add_send(CLI::App& app, Run& run) {
  CLI::App* send = app.add_subcommand("send", "Send files and directories to an sdr recv");
  send->footer(kExamples);
  const auto options = std::make_shared<SendOptions>();
  send->add_option("arguments", options->arguments, "Files and directories, then HOST:PORT of a listening sdr recv")
      ->required()
      ->expected(2, -1)
      ->option_text("PATH... HOST:PORT");
  send->add_flag("--json", options->json, "Report in JSON");
  add_path_options(*send, options->path, false);
  send->callback([options, &run] { run = [options] { return run_send(*options); }; });
}

}  // namespace sdr::cli
