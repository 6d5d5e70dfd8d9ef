// Interrupt: SIGINT and SIGTERM as something to look at, and a descriptor that wakes whoever sleeps.
//
// One at a time. While it lives the first such signal asks the transfer to end well; the second ends the program as if
// nobody had caught it, should ending well take too long for the user's taste.
#pragma once

#include "sdr/file_store.hpp"

namespace sdr::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal's name, or null.
  [[nodiscard]] static const char* caught();
  [[nodiscard]] int fd() const { return event_.get(); }

 private:
  FileDescriptor event_;
};

}  // namespace sdr::cli
