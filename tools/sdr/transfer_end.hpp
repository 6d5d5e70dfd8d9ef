// What sdr send and sdr recv do alike once their session stands and the path is agreed on.
//
// Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "sdr/path.hpp"
#include "sdr/result.hpp"
#include "sdr/session.hpp"
#include "sdr/transfer_interrupt.hpp"
#include "sdr/transfer_loop.hpp"
#include "sdr/transfer_record.hpp"

namespace sdr::cli {

// Connects and runs the side that `make` makes, tells the peer if that fails, and brings the record to its end.
Result<void> run_transfer(Session& session, const Path& path, Duration timeout, const Interrupt& interrupt,
                          TransferProgress& progress, TransferRecord& record,
                          const std::function<std::unique_ptr<TransferSide>(TransferLoop&)>& make);

}  // namespace sdr::cli
