// The completion-time model: paths, schemes, transfers, distributions, Monte Carlo.
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "bindings.hpp"
#include "interruptible.hpp"
#include "model/allreduce.hpp"
#include "model/completion_time.hpp"
#include "model/planner.hpp"
#include "model/samples.hpp"

namespace sdr::python {
namespace {

using model::Allreduce;
using model::CompletionTime;
using model::PathSpec;
using model::SchemeKind;
using model::SchemeSpec;
using model::to_seconds;
using model::Transfer;

PathSpec path_of(double rtt, double rate, double loss, double burst, std::uint64_t packet, std::uint64_t chunk) {
  const PathSpec path{.chunk = {chunk},
                      .packet = {packet},
                      .rate = {rate},
                      .rtt = duration_of("rtt", rtt),
                      .loss = loss,
                      .burst = burst};
  value_of(Transfer::create(path, 1_B));  // checks the path
  return path;
}

// In the order of their declaration, by the names that they print as.
std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  while (model::to_string(static_cast<SchemeKind>(names.size())) != "unknown") {
    names.emplace_back(model::to_string(static_cast<SchemeKind>(names.size())));
  }
  return names;
}

SchemeKind kind_of(const std::string& name) {
  const std::vector<std::string> names = scheme_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<SchemeKind>(found - names.begin());
  std::string known;
  for (const std::string& each : names) known += (known.empty() ? "" : ", ") + each;
  throw py::value_error("scheme '" + name + "' is not one of: " + known);
}

SchemeSpec scheme_of(const std::string& name, unsigned k, unsigned m, double rto_rtts, double fallback_beta,
                     bool interleaved) {
  const SchemeSpec scheme{.kind = kind_of(name),
                          .data_chunks = k,
                          .parity_chunks = m,
                          .rto_rtts = rto_rtts,
                          .fallback_beta = fallback_beta,
                          .interleaved = interleaved};
  if (Result<void> checked = check(scheme); !checked) raise(checked.error());
  return scheme;
}

model::Sender sender_of(const std::string& name) {
  if (name == "paper") return model::Sender::Paper;
  if (name == "serialised") return model::Sender::Serialised;
  throw py::value_error("sender '" + name + "' is not one of: paper, serialised");
}

// draw(options) makes Result<Samples>.
template <typename Draw>
py::array_t<double> drawn(std::uint64_t count, std::uint64_t seed, unsigned jobs, const std::string& sender,
                          Draw draw) {
  model::SampleOptions options{.count = count, .seed = seed, .threads = jobs, .sender = sender_of(sender)};
  return to_array(value_of(interruptible([&](const std::atomic<bool>& stop) {
                    options.stop = &stop;
                    return draw(options);
                  })).times);
}

Allreduce allreduce_of(const PathSpec& path, std::uint64_t buffer, const SchemeSpec& scheme, std::uint32_t datacenters,
                       const std::string& topology, double compute) {
  if (topology != "ring" && topology != "tree")
    throw py::value_error("topology '" + topology + "' is not one of: ring, tree");
  return value_of(Allreduce::create(path, scheme,
                                    {.topology = topology == "ring" ? model::Topology::Ring : model::Topology::Tree,
                                     .datacenters = datacenters,
                                     .buffer = {buffer},
                                     .compute = duration_of("compute", compute)}));
}

void bind_inputs(py::module_& module) {
  py::class_<PathSpec>(module, "PathSpec", "A path, checked.")
      .def(py::init(&path_of), py::arg("rtt"), py::arg("rate"), py::arg("loss"), py::arg("burst"), py::arg("packet"),
           py::arg("chunk"));
  py::class_<SchemeSpec>(module, "SchemeSpec", "A reliability scheme, checked.")
      .def(py::init(&scheme_of), py::arg("name"), py::arg("k"), py::arg("m"), py::arg("rto_rtts"),
           py::arg("fallback_beta"), py::arg("interleaved"))
      .def("text", [](const SchemeSpec& scheme) { return model::to_text(scheme); });
  py::class_<Transfer>(module, "Transfer", "A message on a path.")
      .def(py::init([](const PathSpec& path, std::uint64_t size) { return value_of(Transfer::create(path, {size})); }),
           py::arg("path"), py::arg("size"))
      .def_property_readonly("chunks", &Transfer::chunks)
      .def_property_readonly("injection", &Transfer::injection)
      .def_property_readonly("rtt", &Transfer::rtt)
      .def_property_readonly("chunk_loss", [](const Transfer& transfer) { return transfer.loss().p(); })
      .def_property_readonly("lossless", [](const Transfer& transfer) { return to_seconds(transfer.lossless()); })
      .def_property_readonly("floor", [](const Transfer& transfer) { return to_seconds(transfer.floor()); });
}

void bind_answers(py::module_& module) {
  py::class_<CompletionTime>(module, "CompletionTime", "The distribution of a completion time.")
      .def(py::init([](const Transfer& transfer, const SchemeSpec& scheme) {
             return value_of(CompletionTime::of(transfer, scheme));
           }),
           py::arg("transfer"), py::arg("scheme"))
      .def_property_readonly("fallback", &CompletionTime::fallback)
      .def_property_readonly("mean", [](const CompletionTime& time) { return to_seconds(time.mean()); })
      .def(
          "quantile",
          [](const CompletionTime& time, const Array& shares) {
            return mapped(shares, [&](double share) { return to_seconds(value_of(time.percentile(share))); });
          },
          py::arg("shares"))
      .def(
          "cdf",
          [](const CompletionTime& time, const Array& seconds) {
            return mapped(seconds, [&](double t) {
              return std::isnan(t) ? t : t <= 0 ? 0 : std::isinf(t) ? 1 : time.cdf(model::to_duration(t));
            });
          },
          py::arg("seconds"));
  py::class_<Allreduce>(module, "Allreduce", "An Allreduce over datacenters.")
      .def(py::init(&allreduce_of), py::arg("path"), py::arg("buffer"), py::arg("scheme"), py::arg("datacenters"),
           py::arg("topology"), py::arg("compute"))
      .def_property_readonly("rounds", &Allreduce::rounds)
      .def_property_readonly("lossless", [](const Allreduce& allreduce) { return to_seconds(allreduce.lossless()); })
      .def_property_readonly("bound", [](const Allreduce& allreduce) { return to_seconds(allreduce.bound()); })
      .def_property_readonly("message", [](const Allreduce& allreduce) { return allreduce.message(); })
      .def(
          "samples",
          [](const Allreduce& allreduce, std::uint64_t count, std::uint64_t seed, unsigned jobs,
             const std::string& sender) {
            return drawn(count, seed, jobs, sender, [&](const auto& options) { return allreduce.samples(options); });
          },
          py::arg("count"), py::arg("seed"), py::arg("jobs"), py::arg("sender"));
}

}  // namespace

void bind_model(py::module_& module) {
  bind_inputs(module);
  bind_answers(module);
  module.def("scheme_names", [] {
    py::list names;
    for (const std::string& name : scheme_names()) names.append(name);
    return names;
  });
  module.def(
      "rtt_over_km", [](double kilometres) { return to_seconds(value_of(model::rtt_over({kilometres}))); },
      py::arg("kilometres"));
  module.def(
      "paper_mean",
      [](const Transfer& transfer, const SchemeSpec& scheme) {
        return to_seconds(value_of(model::paper_mean(transfer, scheme)));
      },
      py::arg("transfer"), py::arg("scheme"));
  module.def(
      "samples",
      [](const Transfer& transfer, const SchemeSpec& scheme, std::uint64_t count, std::uint64_t seed, unsigned jobs,
         const std::string& sender) {
        return drawn(count, seed, jobs, sender,
                     [&](const auto& options) { return model::samples(transfer, scheme, options); });
      },
      py::arg("transfer"), py::arg("scheme"), py::arg("count"), py::arg("seed"), py::arg("jobs"), py::arg("sender"));
}

}  // namespace sdr::python
