// The theory over arrays: element i is a path, a size and a share of its own. What NumPy calls a ufunc, but on all
// cores, and with an error that says which element it is about.
#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "bindings.hpp"
#include "interruptible.hpp"
#include "model/completion_time.hpp"

namespace sdr::python {
namespace {

using model::CompletionTime;
using model::SchemeSpec;
using model::Transfer;

constexpr std::size_t kBlock = 16;  // elements that a thread takes at a time: they differ in cost
constexpr std::size_t kNone = SIZE_MAX;
constexpr double kTwoTo63 = 9223372036854775808.0;

enum class Measure { Mean, Quantile, Slowdown, Fallback, Lossless, Floor };

Measure measure_of(const std::string& name) {
  constexpr std::pair<const char*, Measure> kNames[] = {
      {"mean", Measure::Mean},         {"quantile", Measure::Quantile}, {"slowdown", Measure::Slowdown},
      {"fallback", Measure::Fallback}, {"lossless", Measure::Lossless}, {"floor", Measure::Floor}};
  for (const auto& [text, measure] : kNames) {
    if (name == text) return measure;
  }
  throw py::value_error("measure '" + name + "' is not known");
}

Result<double> answer(Measure measure, const Transfer& transfer, const SchemeSpec& scheme, double share) {
  using model::to_seconds;
  if (measure == Measure::Lossless) return to_seconds(transfer.lossless());
  if (measure == Measure::Floor) return to_seconds(transfer.floor());
  const Result<CompletionTime> time = CompletionTime::of(transfer, scheme);
  if (!time) return time.error();
  if (measure == Measure::Fallback) return time->fallback();
  if (measure == Measure::Mean) return to_seconds(time->mean());
  if (measure == Measure::Slowdown) return to_seconds(time->mean()) / to_seconds(transfer.lossless());
  const Result<Duration> quantile = time->percentile(share);
  if (!quantile) return quantile.error();
  return to_seconds(*quantile);
}

class Grid {
 public:
  Grid(Measure measure, const SchemeSpec& scheme, std::vector<Array> columns, Bytes packet, Bytes chunk)
      : measure_(measure), scheme_(scheme), packet_(packet), chunk_(chunk), columns_(std::move(columns)) {
    for (const Array& column : columns_) {
      if (column.size() != columns_[0].size()) throw py::value_error("the arrays differ in length");
      data_.push_back(column.data());
    }
    values_.resize(static_cast<std::size_t>(columns_[0].size()));
  }

  void compute(unsigned jobs, const std::atomic<bool>& stop) {
    std::vector<std::thread> others;
    const std::size_t useful = (values_.size() + kBlock - 1) / kBlock;
    for (std::size_t t = 1; t < std::min<std::size_t>(jobs, useful); ++t) others.emplace_back([&] { work(stop); });
    work(stop);
    for (std::thread& thread : others) thread.join();
  }

  // The first element that has no answer, and why.
  [[nodiscard]] std::size_t failed() const { return failed_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  Result<double> at(std::size_t i) const {
    const double size = data_[0][i];
    const double rtt = data_[2][i];
    if (!(size >= 0 && size < kTwoTo63))
      return Error{ErrorCode::InvalidArgument, fmt::format("size {} bytes is not from 1 to 2^63", size)};
    if (!std::isfinite(rtt)) return Error{ErrorCode::InvalidArgument, fmt::format("rtt {} s is not finite", rtt)};
    const Result<Transfer> transfer = Transfer::create({.chunk = chunk_,
                                                        .packet = packet_,
                                                        .rate = {data_[3][i]},
                                                        .rtt = model::to_duration(rtt),
                                                        .loss = data_[1][i],
                                                        .burst = data_[4][i]},
                                                       Bytes{static_cast<std::uint64_t>(std::llround(size))});
    if (!transfer) return transfer.error();
    return answer(measure_, *transfer, scheme_, data_[5][i]);
  }

  void work(const std::atomic<bool>& stop) {
    while (!stop) {
      const std::size_t begin = next_.fetch_add(kBlock, std::memory_order_relaxed);
      // Elements behind one that failed are of no interest; those before it are all looked at.
      if (begin >= values_.size() || begin > failed_) return;
      for (std::size_t i = begin; i < std::min(begin + kBlock, values_.size()); ++i) {
        const Result<double> value = at(i);
        if (value) {
          values_[i] = *value;
          continue;
        }
        const std::lock_guard lock(mutex_);
        if (i < failed_) {
          failed_ = i;
          error_ = value.error();
        }
      }
    }
  }

  Measure measure_;
  SchemeSpec scheme_;
  Bytes packet_;
  Bytes chunk_;
  std::vector<Array> columns_;  // size, loss, rtt, rate, burst, share
  std::vector<const double*> data_;
  std::vector<double> values_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> failed_{kNone};
  std::mutex mutex_;
  std::optional<Error> error_;
};

// The values, or an index and a message: the Python half knows the shape and says where that is.
py::object grid(const std::string& measure, const SchemeSpec& scheme, const Array& size, const Array& loss,
                const Array& rtt, const Array& rate, const Array& burst, const Array& share, std::uint64_t packet,
                std::uint64_t chunk, unsigned jobs) {
  Grid cells(measure_of(measure), scheme, {size, loss, rtt, rate, burst, share}, {packet}, {chunk});
  interruptible([&](const std::atomic<bool>& stop) { cells.compute(jobs, stop); });
  if (cells.error()) return py::make_tuple(cells.failed(), cells.error()->message);
  py::array_t<double> out(static_cast<py::ssize_t>(cells.values().size()));
  std::copy(cells.values().begin(), cells.values().end(), out.mutable_data());
  return out;
}

}  // namespace

void bind_grid(py::module_& module) {
  module.def("grid", &grid, py::arg("measure"), py::arg("scheme"), py::arg("size"), py::arg("loss"), py::arg("rtt"),
             py::arg("rate"), py::arg("burst"), py::arg("share"), py::arg("packet"), py::arg("chunk"), py::arg("jobs"));
}

}  // namespace sdr::python
