// SweepRanks: the processes of a sweep that mpirun started, as a way to send them short texts.
//
// The implementation over MPI is a module of its own (tools/mpi), which is loaded when mpirun has started more than one
// process: linking libmpi would cost every other command some 10 ms at its start, and a build without MPI lacks the
// module and nothing else. Tests have one in memory.
//
// No call waits: what cannot be sent yet is kept, what has not come yet is not there. One thread.
#pragma once

#include <optional>
#include <string>

namespace sdr::cli {

struct RankMessage {
  int from = 0;
  std::string text;
};

class SweepRanks {
 public:
  SweepRanks() = default;
  virtual ~SweepRanks() = default;
  SweepRanks(const SweepRanks&) = delete;
  SweepRanks& operator=(const SweepRanks&) = delete;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  // Texts between two ranks arrive in order, or not at all when one of them is gone.
  virtual void send(int to, const std::string& text) = 0;
  virtual std::optional<RankMessage> receive() = 0;
  // Ends this process with `code`, within a bound, whatever the others do. `all_well`: none of them is lost.
  [[noreturn]] virtual void leave(int code, bool all_well) = 0;
};

// What the module exports, by these names. `patience_ms` bounds the meeting of the ranks; when it passes, the process
// ends with an explanation. The caller owns the result and ends with leave().
inline constexpr const char* kRanksVersionSymbol = "sdr_sweep_ranks_version";
inline constexpr const char* kRanksOpenSymbol = "sdr_sweep_ranks_open";
using RanksVersion = const char* (*)();
using RanksOpen = SweepRanks* (*)(long patience_ms);

}  // namespace sdr::cli
