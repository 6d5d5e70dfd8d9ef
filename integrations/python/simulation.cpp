// The simulator: Writes of the real protocol over a simulated link in virtual time, one array of each count.
#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "bindings.hpp"
#include "experiment/trials.hpp"
#include "interruptible.hpp"
#include "model/completion_time.hpp"

namespace sdr::python {
namespace {

using experiment::TrialResult;
using experiment::WriteTrial;
using namespace pybind11::literals;

constexpr std::pair<const char*, std::uint64_t TrialResult::*> kCounts[] = {
    {"packets_sent", &TrialResult::packets_sent},
    {"packets_lost", &TrialResult::packets_lost},
    {"queue_drops", &TrialResult::queue_drops},
    {"packets_received", &TrialResult::packets_received},
    {"duplicate_packets", &TrialResult::duplicate_packets},
    {"late_packets", &TrialResult::late_packets},
    {"chunks_sent", &TrialResult::chunks_sent},
    {"chunks_retransmitted", &TrialResult::chunks_retransmitted},
    {"parity_chunks_sent", &TrialResult::parity_chunks_sent},
    {"chunks_recovered", &TrialResult::chunks_recovered},
    {"fallbacks", &TrialResult::fallbacks},
    {"controls_sent", &TrialResult::controls_sent},
    {"controls_answered", &TrialResult::controls_answered}};

WriteTrial trial_of(const std::string& link, std::uint64_t size, const std::string& scheme, int k, int m,
                    double rto_rtts, std::uint64_t mtu, std::uint64_t chunk, double step, std::uint64_t seed) {
  WriteTrial trial;
  trial.link = value_of(simulation::LinkSpec::parse(link));
  trial.link.seed = trial.seed = seed;
  trial.size = {size};
  trial.step = duration_of("step", step);
  if (mtu < 64 || mtu > UINT16_MAX || mtu % 8 != 0)
    throw py::value_error(fmt::format("packet {} bytes is not a multiple of 8 from 64 to 65528", mtu));
  if (chunk % mtu != 0 || chunk / mtu > UINT32_MAX)
    throw py::value_error(fmt::format("chunk {} bytes is not a multiple of the packet, {} bytes", chunk, mtu));
  ConnectionOptions& connection = trial.connection;
  connection.scheme = value_of(parse_scheme(scheme));
  connection.data_chunks = k;
  connection.parity_chunks = m;
  connection.rto_factor = rto_rtts;
  QueuePairOptions& qp = connection.queue_pair;
  qp.mtu = {mtu};
  qp.packets_per_chunk = static_cast<std::uint32_t>(chunk / mtu);
  // What the packet offset addresses, with small packets.
  qp.max_message = std::min(qp.max_message, Bytes{mtu << qp.packet_offset_bits});
  return trial;
}

// The Write as the theory sees it, with `headers` bytes beside the payload of each packet. None where it does not:
// outages, a recorded trace.
py::object transfer_of(const WriteTrial& trial, std::uint64_t headers) {
  const simulation::LinkSpec& link = trial.link;
  if (!link.outages.empty() || !link.trace.empty()) return py::none();
  const QueuePairOptions& qp = trial.connection.queue_pair;
  const std::uint64_t chunk = qp.mtu.count * qp.packets_per_chunk;
  const Bytes packet{qp.mtu.count + headers};
  const Bytes on_wire = packet * qp.packets_per_chunk;
  const auto transfer =
      model::Transfer::create({.chunk = on_wire,
                               .packet = packet,
                               .rate = link.rate,
                               .rtt = link.rtt,
                               .loss = link.loss_of(static_cast<std::uint32_t>(qp.mtu.count + trial.packet_overhead)),
                               .burst = link.burst},
                              on_wire * ((trial.size.count + chunk - 1) / chunk));
  return transfer ? py::cast(*transfer) : py::none();
}

py::dict simulate(const std::string& link, std::uint64_t size, const std::string& scheme, int k, int m, double rto_rtts,
                  std::uint64_t mtu, std::uint64_t chunk, double step, bool known_loss, std::uint32_t warm_writes,
                  std::uint64_t runs, std::uint64_t seed, unsigned jobs) {
  WriteTrial trial = trial_of(link, size, scheme, k, m, rto_rtts, mtu, chunk, step, seed);
  trial.known_loss = known_loss;
  trial.warm_writes = warm_writes;
  if (Result<void> checked = experiment::check(trial); !checked) raise(checked.error());
  const std::vector<TrialResult> results = value_of(interruptible([&](const std::atomic<bool>& stop) {
    return experiment::run_all(trial, {.runs = runs, .threads = jobs, .stop = &stop});
  }));
  const auto count = static_cast<py::ssize_t>(results.size());
  py::array_t<double> completion(count);
  py::dict failures;
  for (std::size_t n = 0; n < results.size(); ++n) {
    const bool failed = results[n].error.has_value();
    completion.mutable_data()[n] =
        failed ? std::numeric_limits<double>::quiet_NaN() : model::to_seconds(results[n].completion);
    if (failed) failures[py::int_(n)] = results[n].error->message;
  }
  py::dict answer("completion"_a = completion, "failures"_a = failures, "link"_a = simulation::to_string(trial.link),
                  "on_wire"_a = transfer_of(trial, trial.packet_overhead), "payload"_a = transfer_of(trial, 0));
  const Bandwidth rate = experiment::pace_of(trial);
  answer["ideal"] = model::to_seconds(rate.time_for(trial.size) + trial.link.rtt);
  for (const auto& [name, member] : kCounts) {
    py::array_t<std::uint64_t> counts(count);
    std::transform(results.begin(), results.end(), counts.mutable_data(),
                   [member = member](const TrialResult& result) { return result.*member; });
    answer[name] = counts;
  }
  return answer;
}

}  // namespace

void bind_simulation(py::module_& module) {
  module.def("simulate", &simulate, py::arg("link"), py::arg("size"), py::arg("scheme"), py::arg("k"), py::arg("m"),
             py::arg("rto_rtts"), py::arg("packet"), py::arg("chunk"), py::arg("step"), py::arg("known_loss"),
             py::arg("warm_writes"), py::arg("runs"), py::arg("seed"), py::arg("jobs"));
}

}  // namespace sdr::python
