#include "sdr/sweep_launch.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "sdr/report.hpp"

namespace sdr::cli {
namespace {

[[maybe_unused]] constexpr const char* kWithoutMpi =
    "all of them would compute the same; build with Open MPI (Debian and Ubuntu: package libopenmpi-dev), or start one";

int ranks_started() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  return size == nullptr ? 1 : std::atoi(size);
}

#if defined(SDR_MPI_MODULE)
// Beside the program in a build tree, in the library directory of an installation.
std::string module_path() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path beside = program / fs::path(SDR_MPI_MODULE).filename();
  return fs::exists(beside, ignored) ? beside.string() : (program / SDR_MPI_MODULE).lexically_normal().string();
}

Result<std::unique_ptr<SweepRanks>> open_module(Duration patience) {
  const std::string path = module_path();
  // Open MPI's own plugins look for its symbols among all that are there.
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return Error{ErrorCode::System, fmt::format("the module for mpirun cannot be loaded: {}", ::dlerror())};
  }
  const auto version = reinterpret_cast<RanksVersion>(::dlsym(module, kRanksVersionSymbol));
  const auto open = reinterpret_cast<RanksOpen>(::dlsym(module, kRanksOpenSymbol));
  if (version == nullptr || open == nullptr || std::strcmp(version(), SDR_VERSION) != 0) {
    return Error{ErrorCode::System, fmt::format("{} is not the module of sdr {} for mpirun", path, SDR_VERSION)};
  }
  return std::unique_ptr<SweepRanks>(open(static_cast<long>(patience.count() / 1'000'000)));
}
#else
Result<std::unique_ptr<SweepRanks>> open_module(Duration /*patience*/) {
  return Error{ErrorCode::System, fmt::format("mpirun started {} of this sdr, which was built without MPI: {}",
                                              ranks_started(), kWithoutMpi)};
}
#endif

}  // namespace

Result<std::unique_ptr<SweepRanks>> meet_ranks(Duration patience) {
  if (ranks_started() <= 1) return std::unique_ptr<SweepRanks>();
  return open_module(patience);
}

}  // namespace sdr::cli
