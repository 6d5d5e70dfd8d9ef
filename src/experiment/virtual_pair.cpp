#include "experiment/virtual_pair.hpp"

#include <utility>

namespace sdr::experiment {

using transport::Site;

Result<void> VirtualPair::open(const ConnectionOptions& options) {
  for (const Site site : {Site::A, Site::B}) {
    ConnectionOptions own = options;
    own.queue_pair.token = token(site);
    // The network outlives the connections; the pointer does not own it.
    DevicePtr device(&network_.device(site), [](transport::Device*) {});
    auto made = Connection::create(device, own);
    if (!made) return made.error();
    end(site).connection = std::move(made).value();
  }
  if (Result<void> connected = a().connect(b().info()); !connected) return connected;
  return b().connect(a().info());
}

bool VirtualPair::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint stop = now_ + limit;
  for (;;) {
    drive(Site::A);
    drive(Site::B);
    if (done()) return true;
    if (now_ >= stop) return false;
    drive_if_poked(Site::A);
    drive_if_poked(Site::B);
    // A machine that wants to be called at once again gets a nanosecond: virtual time always moves.
    now_ = std::min(stop, std::max(std::min(due(Site::A), due(Site::B)), now_ + step_));
  }
}

bool VirtualPair::get_ready(Duration limit) {
  const Connection& a = *end(Site::A).connection;
  const Connection& b = *end(Site::B).connection;
  return run_until([&] { return a.ready() && b.ready(); }, limit);
}

bool VirtualPair::get_quiet(Duration limit) {
  return run_until([this] { return due(Site::A) == kNever && due(Site::B) == kNever; }, limit);
}

TimePoint VirtualPair::due(Site site) {
  if (!end(site).alive) return kNever;
  if (end(site).connection->failure()) return kNever;
  return std::min(end(site).next, network_.endpoint(site)->next_event());
}

void VirtualPair::drive(Site site) {
  End& own = end(site);
  if (!own.alive || (!own.poked && now_ < due(site))) return;
  own.poked = false;
  own.next = own.connection->progress(now_);
  ++drives_;
}

}  // namespace sdr::experiment
