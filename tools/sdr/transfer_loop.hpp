// TransferLoop: keeps a file transfer going: the Connection's packets, the session's messages, the worker's results,
// the user's interrupt, the progress display, each in its turn on one thread.
//
// The two ends of a transfer are TransferSides; the loop calls them and owns every wait. Bounds: both ends say that
// they are alive several times within the timeout, so a peer that was silent for that long is gone; a session that
// closes tells it sooner. The data path's own bound (Connection) is the same timeout.
//
// Threads: one, and the worker's.
#pragma once

#include <optional>
#include <string>

#include "sdr/connection.hpp"
#include "sdr/driver.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/session.hpp"
#include "sdr/transfer_interrupt.hpp"
#include "sdr/transfer_progress.hpp"
#include "sdr/transfer_worker.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

// What one end does; every call comes from the loop.
class TransferSide {
 public:
  virtual ~TransferSide() = default;

  virtual Result<void> hear(const Json& message) = 0;
  // Takes completions and posts what may be posted.
  virtual Result<void> advance() = 0;
  [[nodiscard]] virtual bool finished() const = 0;
  // Brings the record up to date; how far it is.
  virtual TransferSample sample() = 0;
  // What the peer is told at intervals.
  [[nodiscard]] virtual Json alive() const = 0;
};

class TransferLoop {
 public:
  TransferLoop(Session& session, Connection& connection, TransferProgress& progress, const Interrupt& interrupt,
               Duration timeout);
  ~TransferLoop();
  TransferLoop(const TransferLoop&) = delete;
  TransferLoop& operator=(const TransferLoop&) = delete;

  // Until the side has finished, or the first error. Once; afterwards the worker has stopped, and nothing that was
  // given to it runs any more.
  Result<void> run(TransferSide& side);

  // To the peer. What goes wrong ends run().
  void say(const Json& message);
  void fail(Error error);
  [[nodiscard]] Connection& connection() { return connection_; }
  [[nodiscard]] const Connection& connection() const { return connection_; }
  [[nodiscard]] TransferWorker& worker() { return worker_; }

 private:
  Result<void> turn(TransferSide& side);
  Result<void> attend(TransferSide& side, TimePoint now);
  Result<void> listen(TransferSide& side, TimePoint now);

  Session& session_;
  Connection& connection_;
  TransferProgress& progress_;
  const Interrupt& interrupt_;
  Duration timeout_;
  Driver driver_;
  TimePoint heard_{};
  TimePoint speak_{};
  std::optional<Error> failure_;
  TransferWorker worker_;  // last: its jobs may refer to all of the above
};

// Ends a session so that the peer can read what was said last: a close with unread data would take it away.
void end_session(Session& session, const std::string& error);

}  // namespace sdr::cli
