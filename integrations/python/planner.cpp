// The planner: its answer as dictionaries, of which the Python half makes records.
#include "model/planner.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "bindings.hpp"
#include "interruptible.hpp"
#include "sdr/plan_encode_speed.hpp"

namespace sdr::python {
namespace {

using model::PlannedScheme;
using model::to_seconds;
using namespace pybind11::literals;

py::object or_none(Bandwidth rate) {
  return rate.limited() ? py::object(py::float_(rate.bits_per_second)) : py::none();
}

py::dict record_of(const PlannedScheme& planned) {
  const bool coded = planned.scheme.coded();
  py::dict record(
      "name"_a = std::string(model::to_string(planned.scheme.kind)), "scheme"_a = model::to_text(planned.scheme),
      "tuned"_a = planned.tuned, "mean"_a = to_seconds(planned.time.mean), "p50"_a = to_seconds(planned.time.p50),
      "p99"_a = to_seconds(planned.time.p99), "p999"_a = to_seconds(planned.time.p999), "slowdown"_a = planned.slowdown,
      "parity_overhead"_a = planned.parity, "repair_overhead"_a = planned.repairs,
      "within_budget"_a = planned.within_budget, "fallback"_a = planned.fallback, "holds_to_loss"_a = planned.holds_to,
      "encode_rate"_a = or_none(planned.encode), "at_floor"_a = planned.at_floor);
  record["k"] = coded ? py::object(py::int_(planned.scheme.data_chunks)) : py::none();
  record["m"] = coded ? py::object(py::int_(planned.scheme.parity_chunks)) : py::none();
  const bool unknown = planned.parity > 0 && !planned.encode.limited();
  record["encode_cores"] = unknown ? py::none() : py::object(py::float_(planned.cores));
  return record;
}

py::dict plan(const model::PathSpec& path, std::uint64_t size, double budget, bool measure_encoding) {
  cli::EncodeSpeedometer speedometer(path.chunk);
  const model::EncodeSpeed unknown = [](const model::SchemeSpec&) { return Bandwidth{}; };
  const model::EncodeSpeed measured = std::ref(speedometer);
  // A plan takes milliseconds to a second or two: it is not stopped half way.
  const model::Plan plan = value_of(interruptible([&](const std::atomic<bool>&) {
    return model::plan(path, {size}, budget, measure_encoding ? measured : unknown);
  }));
  py::list schemes;
  for (const PlannedScheme& planned : plan.schemes) schemes.append(record_of(planned));
  py::list untunable;
  for (const model::SchemeKind kind : plan.untunable) untunable.append(std::string(model::to_string(kind)));
  return py::dict("schemes"_a = schemes, "best"_a = plan.best, "reason"_a = model::reason(plan),
                  "untunable"_a = untunable, "ideal"_a = to_seconds(plan.transfer.lossless()),
                  "floor"_a = to_seconds(plan.transfer.floor()), "chunks"_a = plan.transfer.chunks());
}

}  // namespace

void bind_planner(py::module_& module) {
  module.def("plan", &plan, py::arg("path"), py::arg("size"), py::arg("budget"), py::arg("measure_encoding"));
}

}  // namespace sdr::python
