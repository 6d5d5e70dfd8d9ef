// The extension module _sdr: libsdr's model, planner and simulator. People import the package `sdr` on top of it.
#include <pybind11/pybind11.h>

#include <string_view>

#include "arguments.hpp"
#include "bindings.hpp"

PYBIND11_MODULE(_sdr, module) {
  using namespace sdr;
  using namespace sdr::python;
  module.doc() = "The C++ half of the package sdr: seconds, bytes and bit/s as plain numbers. Import sdr instead.";
  module.attr("__version__") = SDR_VERSION;
  module.def(
      "parse_seconds", [](std::string_view text) { return model::to_seconds(value_of(parse_duration(text))); },
      py::arg("text"), "Seconds of a text such as '25ms'.");
  module.def(
      "parse_bytes", [](std::string_view text) { return value_of(parse_bytes(text)).count; }, py::arg("text"),
      "Bytes of a text such as '128MiB'.");
  module.def(
      "parse_bits_per_second", [](std::string_view text) { return value_of(parse_bandwidth(text)).bits_per_second; },
      py::arg("text"), "Bits per second of a text such as '400Gbit'.");
  bind_model(module);
  bind_grid(module);
  bind_planner(module);
  bind_simulation(module);
}
