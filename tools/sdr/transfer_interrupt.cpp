#include "sdr/transfer_interrupt.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace sdr::cli {

namespace {

std::atomic<int> signal_number{0};
std::atomic<int> wake_fd{-1};

void on_signal(int number) {
  const int saved = errno;
  signal_number.store(number, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd.load(std::memory_order_relaxed), &one, sizeof one);
  errno = saved;
}

void handle(void (*handler)(int)) {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = handler == SIG_DFL ? 0 : static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace

Interrupt::Interrupt() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!event_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
  wake_fd.store(event_.get(), std::memory_order_relaxed);
  handle(on_signal);
}

Interrupt::~Interrupt() {
  handle(SIG_DFL);
}

const char* Interrupt::caught() {
  switch (signal_number.load(std::memory_order_relaxed)) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    default:
      return nullptr;
  }
}

}  // namespace sdr::cli
