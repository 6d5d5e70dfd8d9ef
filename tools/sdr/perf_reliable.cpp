// The two ends of a perf run over a Connection.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sdr/driver.hpp"
#include "sdr/perf_ends.hpp"
#include "sdr/perf_run.hpp"
#include "sdr/registered_memory.hpp"

namespace sdr::cli {
namespace {

// How long to sleep at most when nothing is due: only the session could have news, and it wakes the driver.
constexpr Duration kNap = std::chrono::milliseconds(100);

Result<std::unique_ptr<Connection>> make_connection(const Path& path, const PerfPlan& plan, Session& session) {
  ConnectionOptions options = path.connection_options();
  options.max_outstanding = std::max(options.max_outstanding, plan.receives() + 1);
  const auto executor = path.scheme().has_parity() ? Driver::make_executor() : nullptr;
  auto connection = Connection::create(path.device(), options, executor);
  if (!connection) {
    session.send_error(connection.error().message);
    return connection.error();
  }
  if (Result<void> connected = connect_over(session, **connection); !connected) return connected.error();
  return connection;
}

class Sender {
 public:
  Sender(Connection& connection, const PerfPlan& plan, const Payload& payload)
      : connection_(connection), payload_(payload), book_(plan) {}

  // Takes completions and posts Writes.
  Result<void> work() {
    while (const auto completion = connection_.poll_write()) {
      if (completion->error) return *completion->error;
      book_.completed(completion->handle.number, completion->at);
    }
    if (book_.warmed_up() && !at_warm_up_) at_warm_up_ = connection_.statistics();
    while (book_.may_post()) {
      const Result<WriteHandle> posted = connection_.post_write(payload_.of(book_.next()));
      if (!posted && posted.error().code == ErrorCode::Retry) break;
      if (!posted) return posted.error();
      book_.posted(Driver::now());
    }
    return {};
  }

  [[nodiscard]] bool finished() const { return book_.finished(); }

  [[nodiscard]] SenderResult result() const {
    const ConnectionStatistics now = connection_.statistics();
    const ConnectionStatistics before = at_warm_up_.value_or(ConnectionStatistics{});
    SenderResult result;
    book_.report(result);
    result.packets_sent = now.packets_sent - before.packets_sent;
    // The count is of the peer's latest word, which may be lower than an earlier one.
    result.packets_lost = now.packets_lost - std::min(now.packets_lost, before.packets_lost);
    result.chunks_sent = now.chunks_sent - before.chunks_sent;
    result.chunks_retransmitted = now.chunks_retransmitted - before.chunks_retransmitted;
    result.parity_chunks_sent = now.parity_chunks_sent - before.parity_chunks_sent;
    result.send_calls = now.send_calls - before.send_calls;
    result.rtt_min = now.rtt_min;
    result.rtt_smoothed = now.rtt_smoothed;
    result.chunk_bytes = connection_.geometry().chunk_bytes;
    result.packet_overhead = connection_.geometry().packet_overhead;
    if (const auto failure = connection_.offload_failure()) result.offload_failure = failure->message;
    result.rate = now.rate;
    result.link = connection_.link();
    return result;
  }

 private:
  Connection& connection_;
  const Payload& payload_;
  WriteBook book_;
  std::optional<ConnectionStatistics> at_warm_up_;
};

class Receiver {
 public:
  Receiver(Connection& connection, const PerfPlan& plan, ReceiveBuffers& buffers)
      : connection_(connection), plan_(plan), buffers_(buffers) {}

  Result<void> work() {
    while (const auto completion = connection_.poll_receive()) {
      if (completion->error) return *completion->error;
      if (completion->length != plan_.size.count) {
        return Error{ErrorCode::Protocol, fmt::format("Write {} brought {} bytes instead of {}",
                                                      completion->handle.number, completion->length, plan_.size.count)};
      }
      buffers_.complete(completion->handle.number, false);
    }
    if (buffers_.completed() >= plan_.warmup && !at_warm_up_) at_warm_up_ = connection_.statistics();
    while (buffers_.has_free()) {
      const Result<ReceiveHandle> posted = connection_.post_receive(buffers_.buffer(buffers_.next()));
      if (!posted && posted.error().code == ErrorCode::Retry) break;
      if (!posted) return posted.error();
      buffers_.posted();
    }
    if (const auto prefix = connection_.landed_prefix()) buffers_.landed(prefix->handle.number, prefix->bytes);
    buffers_.verify_some();
    return {};
  }

  [[nodiscard]] ReceiverResult result() const {
    const ConnectionStatistics now = connection_.statistics();
    const ConnectionStatistics before = at_warm_up_.value_or(ConnectionStatistics{});
    ReceiverResult result;
    buffers_.report(result);
    add_received(result, now, before);
    if (const auto failure = connection_.offload_failure()) result.offload_failure = failure->message;
    result.chunks_recovered = now.chunks_recovered - before.chunks_recovered;
    result.fallbacks = now.fallbacks - before.fallbacks;
    return result;
  }

 private:
  Connection& connection_;
  const PerfPlan& plan_;
  ReceiveBuffers& buffers_;
  std::optional<ConnectionStatistics> at_warm_up_;
};

}  // namespace

Result<SenderResult> send_reliable(const Path& path, const PerfPlan& plan, const Payload& payload, Session& session) {
  // Before what sends from it or receives into it, so that it goes after.
  const auto registered = RegisteredMemory::make(path.device(), payload.memory());
  if (!registered) return registered.error();
  auto connection = make_connection(path, plan, session);
  if (!connection) return connection.error();
  Driver driver;
  driver.add(**connection);
  driver.watch(session.fd());
  SessionWatch watch(session);
  const auto session_over = [&] { return watch.look(Driver::now()) || (*connection)->failure().has_value(); };

  driver.run_until([&] { return (*connection)->ready() || session_over(); }, path.timeout());
  Sender sender(**connection, plan, payload);
  Result<void> worked;
  while (worked && !sender.finished()) {
    if (watch.error()) return *watch.error();
    if ((*connection)->failure()) return *(*connection)->failure();
    worked = sender.work();
    driver.run_once(kNap);
    watch.look(Driver::now());
  }
  if (!worked) return worked.error();
  if (Result<void> sent = session.send({{"done", true}}); !sent) return sent.error();
  return sender.result();
}

Result<ReceiverResult> receive_reliable(const Path& path, const PerfPlan& plan, ReceiveBuffers& buffers,
                                        Session& session) {
  // Before what sends from it or receives into it, so that it goes after.
  const auto registered = RegisteredMemory::make(path.device(), buffers.memory());
  if (!registered) return registered.error();
  auto connection = make_connection(path, plan, session);
  if (!connection) return connection.error();
  Driver driver;
  driver.add(**connection);
  driver.watch(session.fd());
  SessionWatch watch(session);
  Receiver receiver(**connection, plan, buffers);
  // The client's word comes after its last completion: all receives are complete then, and only need verification.
  while (!watch.message() || !buffers.finished()) {
    if (watch.error()) return *watch.error();
    if ((*connection)->failure()) return *(*connection)->failure();
    if (Result<void> worked = receiver.work(); !worked) return worked.error();
    driver.run_once(buffers.busy() ? Duration(0) : kNap);
    watch.look(Driver::now());
  }
  return receiver.result();
}

}  // namespace sdr::cli
