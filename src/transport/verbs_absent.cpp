// The verbs transport of a build without libibverbs: it says so.
#include "transport/verbs.hpp"

namespace sdr::transport {

bool have_verbs() {
  return false;
}

Result<std::unique_ptr<Device>> open_verbs(const VerbsOptions& options) {
  return Error{ErrorCode::System, "RDMA device " + options.device +
                                      ": this build of libsdr has no verbs transport; install libibverbs-dev and build "
                                      "again with SDR_VERBS=ON"};
}

std::vector<VerbsFacts> list_verbs_devices() {
  return {};
}

bool is_verbs_device(std::string_view /*name*/) {
  return false;
}

}  // namespace sdr::transport
