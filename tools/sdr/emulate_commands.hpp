// EmulatedCommands: what runs at the two ends of an emulated path.
//
// The commands are children of a first process of a PID namespace (init), which is a child of this one. When it goes,
// the kernel ends everything in the namespace, grandchildren and daemons too; and it goes when this process dies,
// however it dies, when this object does, or when its pipe to us closes. Start it before there are threads.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "sdr/emulate_ends.hpp"
#include "sdr/file_store.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

struct CommandPlan {
  std::array<std::string, 2> command;  // for sh -c, by end; empty: nothing runs there
  std::uint16_t await_port = 0;        // the right one starts when the left end has a socket on this port
  bool output_to_stderr = false;       // of the commands; stdout is for the report
};

class EmulatedCommands {
 public:
  static Result<EmulatedCommands> start(const EmulatedEnds& ends, const CommandPlan& plan);
  ~EmulatedCommands();
  EmulatedCommands(EmulatedCommands&& other) noexcept;
  EmulatedCommands& operator=(EmulatedCommands&&) = delete;

  // Readable when a command has ended.
  [[nodiscard]] int fd() const { return events_.get(); }
  // Takes notice of what has ended.
  void poll();
  // How the end's command ended: its exit code, 128 + N for signal N. Nothing while it runs, or when there is none.
  [[nodiscard]] std::optional<int> code(std::size_t which) const { return codes_[which]; }
  [[nodiscard]] bool running(std::size_t which) const { return started_[which] && !codes_[which]; }
  // SIGTERM to everything that runs.
  void ask_to_end();

 private:
  EmulatedCommands(pid_t init, FileDescriptor events, FileDescriptor orders, const CommandPlan& plan);

  pid_t init_;
  FileDescriptor events_;
  FileDescriptor orders_;
  std::array<bool, 2> started_;
  std::array<std::optional<int>, 2> codes_;
};

}  // namespace sdr::cli
