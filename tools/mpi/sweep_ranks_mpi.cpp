// SweepRanks over MPI: the module that `sdr sweep` loads when mpirun started it.
//
// MPI bounds nothing by itself: a call may wait for a process that is dead. So everything here is asked, not awaited
// (Isend, Improbe, Test), and where MPI only has calls that wait (Init, Finalize, Abort), a thread ends this process
// when they take too long. Open MPI says by its environment whether mpirun goes on when a process is killed
// (--enable-recovery): how to leave depends on it.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "sdr/sweep_ranks.hpp"

namespace sdr::cli {
namespace {

using std::chrono::milliseconds;

constexpr int kTag = 1;
constexpr int kFailed = 1;
constexpr milliseconds kToSendTheRest{5000};
constexpr milliseconds kToLeave{10000};
constexpr milliseconds kLook{1};

// While this lives, the process ends with `code` when `bound` has passed.
class Bound {
 public:
  Bound(milliseconds bound, int code, const char* complaint)
      : thread_([this, bound, code, complaint] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, bound, [this] { return over_; })) return;
          if (complaint != nullptr) {
            std::fprintf(stderr, "sdr sweep: %s within %lld s\n", complaint,
                         static_cast<long long>(bound.count() / 1000));
          }
          std::fflush(nullptr);
          ::_exit(code);
        }) {}
  ~Bound() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;  // guarded by mutex_
  std::thread thread_;
};

// A text on its way; its place in memory stays.
struct Transfer {
  std::string text;
  int peer = 0;
  MPI_Request request = MPI_REQUEST_NULL;

  [[nodiscard]] bool over() {
    int done = 0;
    return MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  }
};

class RanksOverMpi final : public SweepRanks {
 public:
  explicit RanksOverMpi(milliseconds patience) {
    const Bound bound(patience, kFailed, "the ranks that mpirun started did not meet");
    int given = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void send(int to, const std::string& text) override {
    sending_.remove_if([](Transfer& transfer) { return transfer.over(); });
    Transfer& transfer = sending_.emplace_back();
    transfer.text = text;
    // What fails here fails since the peer is gone, and that its silence will say.
    if (MPI_Isend(transfer.text.data(), static_cast<int>(transfer.text.size()), MPI_CHAR, to, kTag, MPI_COMM_WORLD,
                  &transfer.request) != MPI_SUCCESS) {
      sending_.pop_back();
    }
  }

  std::optional<RankMessage> receive() override {
    probe();
    // A long text comes in pieces; if its sender dies in between, it never comes, and nobody waits for it.
    for (auto transfer = receiving_.begin(); transfer != receiving_.end(); ++transfer) {
      if (!transfer->over()) continue;
      RankMessage message{.from = transfer->peer, .text = std::move(transfer->text)};
      receiving_.erase(transfer);
      return message;
    }
    return std::nullopt;
  }

  [[noreturn]] void leave(int code, bool all_well) override {
    std::fflush(nullptr);
    const auto until = std::chrono::steady_clock::now() + kToSendTheRest;
    while (!sending_.empty() && std::chrono::steady_clock::now() < until) {
      sending_.remove_if([](Transfer& transfer) { return transfer.over(); });
      // Nobody knows which of them go to the dead: those that live have theirs at the first look or soon after.
      if (!all_well && std::chrono::steady_clock::now() + kToSendTheRest > until + milliseconds(500)) break;
      std::this_thread::sleep_for(kLook);
    }
    if (all_well) {
      const Bound bound(kToLeave, code, nullptr);
      MPI_Finalize();
    } else if (const char* recovery = std::getenv("OMPI_MCA_orte_enable_recovery");
               recovery == nullptr || std::strcmp(recovery, "1") != 0) {
      // mpirun takes a process that just ends for a failure, and ends the stopped only when told to abort.
      const Bound bound(kToLeave, code, nullptr);
      if (rank_ == 0) MPI_Abort(MPI_COMM_WORLD, code);
      if (code == 0) std::this_thread::sleep_for(kToLeave);
    }
    ::_exit(code);
  }

 private:
  void probe() {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};
    if (MPI_Improbe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &message, &status) != MPI_SUCCESS || there == 0)
      return;
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    Transfer& transfer = receiving_.emplace_back();
    transfer.text.resize(static_cast<std::size_t>(length));
    transfer.peer = status.MPI_SOURCE;
    if (MPI_Imrecv(transfer.text.data(), length, MPI_CHAR, &message, &transfer.request) != MPI_SUCCESS) {
      receiving_.pop_back();
    }
  }

  int rank_ = 0;
  int size_ = 1;
  std::list<Transfer> sending_;
  std::list<Transfer> receiving_;
};

}  // namespace
}  // namespace sdr::cli

extern "C" {

__attribute__((visibility("default"))) const char* sdr_sweep_ranks_version() {
  return SDR_VERSION;
}

__attribute__((visibility("default"))) sdr::cli::SweepRanks* sdr_sweep_ranks_open(long patience_ms) {
  return std::make_unique<sdr::cli::RanksOverMpi>(std::chrono::milliseconds(patience_ms)).release();
}
}
