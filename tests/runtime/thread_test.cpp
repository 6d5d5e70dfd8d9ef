#include "runtime/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cstring>

namespace sdr::runtime {
namespace {

TEST(Thread, OfOurs_TakesNoSignalOfTheProcess_ButItsOwnFaults) {
  sigset_t mask{};
  start_thread("mask", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); }).join();
  for (const int of_the_process : {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1}) {
    EXPECT_EQ(sigismember(&mask, of_the_process), 1) << strsignal(of_the_process);
  }
  for (const int own : {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) {
    EXPECT_EQ(sigismember(&mask, own), 0) << strsignal(own);
  }
  sigset_t ours{};
  pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGINT), 0) << "the mask of the caller is as before";
}

}  // namespace
}  // namespace sdr::runtime
