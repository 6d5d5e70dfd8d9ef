// Emulators of the riscv device that this process has started.
#pragma once

#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace sdr::offload {

inline std::vector<pid_t> emulators() {
  std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  std::vector<pid_t> found;
  for (pid_t child = 0; file >> child;) {
    std::ifstream comm("/proc/" + std::to_string(child) + "/comm");
    std::string name;
    if (std::getline(comm, name) && name.starts_with("qemu-riscv64")) found.push_back(child);
  }
  return found;
}

}  // namespace sdr::offload
