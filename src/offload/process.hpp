// Process: the device's side of a Device: whatever runs DeviceWorker over the windows, in this process or another.
//
// One thread starts and ends it. Ending is bounded, and kills what does not end by itself; memory in the windows may be
// let go afterwards.
#pragma once

#include <memory>
#include <string>

#include "offload/shared_memory.hpp"
#include "offload/windows.hpp"
#include "sdr/result.hpp"

namespace sdr::offload {

class Process {
 public:
  virtual ~Process() = default;
  // Ok while it runs; otherwise how it ended.
  virtual Result<void> running() = 0;
  // After the stop word in the header was set. An error says that it did not end as it should; it has ended all the
  // same.
  virtual Result<void> end() = 0;
  // The process's number, where it has one of its own; 0 otherwise.
  [[nodiscard]] virtual int id() const { return 0; }
};

// Threads of this process, each on a core of its own where there are as many.
Result<std::unique_ptr<Process>> start_host_process(const Windows& windows);

// An emulated RV64 processor. `plugin` is an argument for the emulator's -plugin, or empty.
Result<std::unique_ptr<Process>> start_riscv_process(const Windows& windows, const SharedMemory& device,
                                                     const SharedMemory& host, const std::string& plugin);
// Why start_riscv_process() cannot work here, or ok: no device program in this build, or no emulator on this machine.
Result<void> riscv_available();

}  // namespace sdr::offload
