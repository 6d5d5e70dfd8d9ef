// What crosses from Python and back: seconds and errors.
//
// Rule of the C++ half of the module (_sdr): plain numbers in base units (seconds, bytes, bit/s). Texts such as "25ms"
// are read by the Python half, through the three parsers that _sdr offers.
//
// Errors: what a caller got wrong is a ValueError with libsdr's message, all else a RuntimeError.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/transfer.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::python {

namespace py = pybind11;

// One-dimensional and contiguous; the Python half broadcasts and gives the answer its shape.
using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;

[[noreturn]] inline void raise(const Error& error) {
  if (error.code == ErrorCode::InvalidArgument || error.code == ErrorCode::Mismatch)
    throw py::value_error(error.message);
  throw std::runtime_error(error.message);
}

template <typename T>
T value_of(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(result).value();
}

inline Duration duration_of(const char* what, double seconds) {
  if (!std::isfinite(seconds)) throw py::value_error(std::string(what) + " is not a finite number of seconds");
  return model::to_duration(seconds);
}

// Seconds of a function of each element.
template <typename Function>
py::array_t<double> mapped(const Array& in, Function function) {
  py::array_t<double> out(in.size());
  const double* from = in.data();
  double* to = out.mutable_data();
  for (py::ssize_t i = 0; i < in.size(); ++i) to[i] = function(from[i]);
  return out;
}

inline py::array_t<double> to_array(const std::vector<Duration>& times) {
  py::array_t<double> out(static_cast<py::ssize_t>(times.size()));
  double* to = out.mutable_data();
  for (const Duration time : times) *to++ = model::to_seconds(time);
  return out;
}

}  // namespace sdr::python
