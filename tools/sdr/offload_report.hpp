// OffloadReport: one trial of an offload device (src/offload/trial.hpp) and what it is told as.
//
// One thread, beside the device's.
#pragma once

#include <cstdint>
#include <string>

namespace sdr::cli {

struct OffloadOptions {
  std::string device = "host";
  std::uint64_t packets = 1'000'000;
  unsigned threads = 4;
  unsigned channels = 4;
  std::string order = "inorder";
  unsigned chunk_packets = 16;
  bool clean = false;
  std::string plugin;
  std::uint64_t seed = 1;
  bool json = false;
};

// Returns the exit code.
int run_offload(const OffloadOptions& options);

}  // namespace sdr::cli
