// SweepCoordinator: rank 0 of a sweep, or the only process. It hands out cells, computes cells itself, and writes down
// what is finished; alone it does the same without anybody to hand out to.
//
// No wait is without bound: ranks that are silent for longer than the patience are lost (SweepDispatcher). A rank
// of another program or spec ends the sweep: it was started wrongly. One thread, beside the worker's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sdr/result.hpp"
#include "sdr/sweep_dispatcher.hpp"
#include "sdr/sweep_journal.hpp"
#include "sdr/sweep_message.hpp"
#include "sdr/sweep_ranks.hpp"
#include "sdr/sweep_spec.hpp"
#include "sdr/sweep_worker.hpp"

namespace sdr::cli {

class SweepCoordinator {
 public:
  struct Options {
    Duration patience = std::chrono::seconds(60);
    std::function<TimePoint()> now;
    std::function<void(const std::string& note)> say;  // what a person should know, as it happens
    Duration between_progress{0};                      // zero: says nothing of progress
  };

  // `ranks` may be null. All outlive this.
  SweepCoordinator(const SweepSpec& spec, const SweepIdentity& identity, SweepJournal& journal, CellWorker& worker,
                   SweepRanks* ranks, Options options);

  // Until every cell has an entry in the journal. An error when that cannot be written, or when ranks are not of one
  // program and spec; what is there stays. The others are told that it is over.
  Result<void> run();

  // Cells computed by run(), failed ones included.
  [[nodiscard]] std::uint64_t computed() const { return computed_; }
  // Ranks lost, one line each: "rank 2 (host, pid 7), silent for 60 s".
  [[nodiscard]] std::vector<std::string> lost() const;
  // Every rank is there.
  [[nodiscard]] bool all_well() const { return dispatcher_.lost().empty(); }

 private:
  void listen();
  void hear_hello(int rank, const SweepMessage& message);
  void settle(int rank, const Json& entry);
  void hand_out();
  void notice_losses();
  void tell_others(const SweepMessage& message);
  void report_progress();
  void write(const Json& entry);
  [[nodiscard]] std::string name(int rank) const;

  const SweepSpec& spec_;
  const SweepIdentity& identity_;
  SweepJournal& journal_;
  CellWorker& worker_;
  SweepRanks* ranks_;
  Options options_;
  SweepDispatcher dispatcher_;
  std::map<int, std::string> names_;  // of ranks that said hello
  std::map<int, std::string> fates_;  // of ranks that were lost
  std::uint64_t computed_ = 0;
  Result<void> going_;  // an error when it cannot go on
  TimePoint said_{};
  TimePoint progressed_{};
};

// Tells all others that it is over, and whether every rank is there.
void dismiss(SweepRanks& ranks, bool all_well);

}  // namespace sdr::cli
