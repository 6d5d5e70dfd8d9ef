#include "sdr/transfer_end.hpp"

#include <algorithm>

#include "sdr/connection.hpp"
#include "sdr/driver.hpp"
#include "sdr/transfer_plan.hpp"

namespace sdr::cli {

namespace {

Result<std::unique_ptr<Connection>> connect_data(Session& session, const Path& path, Duration timeout) {
  ConnectionOptions options = path.connection_options();
  // A block in one transfer, so that as many blocks as there are slots are under way.
  options.queue_pair.max_message = Bytes{std::max(kBlock, std::uint64_t{256} * path.mtu() * path.chunk_packets())};
  options.peer_timeout = timeout;
  auto connection =
      Connection::create(path.device(), options, path.scheme().has_parity() ? Driver::make_executor() : nullptr);
  if (!connection) {
    session.send_error(connection.error().message);
    return connection.error();
  }
  if (Result<void> connected = connect_over(session, **connection); !connected) return connected.error();
  return connection;
}

}  // namespace

Result<void> run_transfer(Session& session, const Path& path, Duration timeout, const Interrupt& interrupt,
                          TransferProgress& progress, TransferRecord& record,
                          const std::function<std::unique_ptr<TransferSide>(TransferLoop&)>& make) {
  record.peer = session.peer().to_string();
  const auto connection = connect_data(session, path, timeout);
  if (!connection) return connection.error();
  const TimePoint start = Driver::now();
  TransferLoop loop(session, **connection, progress, interrupt, timeout);
  const std::unique_ptr<TransferSide> side = make(loop);
  Result<void> result = loop.run(*side);
  record.elapsed = Driver::now() - start;
  // What the peer said itself it need not be told, and one that is gone cannot be.
  const bool tell = !result && result.error().code != ErrorCode::Mismatch && result.error().code != ErrorCode::Closed;
  end_session(session, tell ? result.error().message : "");
  return result;
}

}  // namespace sdr::cli
