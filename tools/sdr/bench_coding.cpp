#include "sdr/bench_coding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace sdr::cli {
namespace {

using coding::CodeKind;
using coding::CodeShape;
using experiment::CodeSpeed;
using experiment::CodingSpeed;
using experiment::TailCost;

constexpr CodeShape kReedSolomon{CodeKind::ReedSolomon, 32, 8};
constexpr CodeShape kXor{CodeKind::Xor, 32, 8};
constexpr double kTailRates[] = {40e9, 100e9, 400e9};
constexpr double kTailLosses[] = {1e-4, 1e-3, 1e-2};

std::string name_of(const CodeShape& shape) {
  return fmt::format("{}:{}:{}", shape.kind == CodeKind::Xor ? "ec-xor" : "ec-rs", shape.k, shape.m);
}

Json json_of(const CodeSpeed& speed, double copy) {
  return {{"encode_GBps", speed.encode},
          {"decode_GBps", speed.decode},
          {"isal_encode_GBps", speed.isal_encode},
          {"encode_over_isal", speed.encode / speed.isal_encode},
          {"encode_over_memcpy", speed.encode / copy},
          {"decode_over_encode", speed.decode / speed.encode}};
}

Result<Json> tail_costs(const BenchCodingOptions& options) {
  experiment::TailOptions tail;
  tail.runs = options.speed.runs;
  tail.each = options.speed.each;
  Json costs = Json::array();
  for (const double rate : kTailRates)
    for (const double loss : kTailLosses) {
      const Result<TailCost> cost = experiment::measure_tail_cost({rate}, loss, tail);
      if (!cost) return cost.error();
      costs.push_back({{"rate_gbps", rate / 1e9},
                       {"loss", loss},
                       {"k", cost->k},
                       {"m", cost->m},
                       {"submessages", cost->submessages},
                       {"encode_GBps", cost->encode},
                       {"decode_GBps", cost->decode},
                       {"encode_cores", cost->encode_cores},
                       {"decode_cores", cost->decode_cores}});
    }
  return costs;
}

}  // namespace

std::vector<CodeShape> usual_codes() {
  std::vector<CodeShape> codes;
  for (const unsigned m : {1U, 2U, 4U, 16U, 32U}) codes.push_back({CodeKind::ReedSolomon, 4 * m, m});
  for (const unsigned m : {1U, 2U, 4U, 16U, 32U}) codes.push_back({CodeKind::ReedSolomon, 32, m});
  codes.push_back({CodeKind::ReedSolomon, 239, 16});
  return codes;
}

Result<Json> bench_coding(const BenchCodingOptions& options) {
  experiment::CodingSpeedOptions speed = options.speed;
  std::erase_if(speed.shapes, [](const CodeShape& shape) { return shape == kReedSolomon || shape == kXor; });
  speed.shapes.insert(speed.shapes.begin(), {kReedSolomon, kXor});
  const Result<CodingSpeed> measured = experiment::measure_coding_speed(speed);
  if (!measured) return measured.error();
  Json report = {{"threads", speed.threads},
                 {"runs", speed.runs},
                 {"data_bytes", speed.data.count},
                 {"chunk_bytes", speed.chunk.count},
                 {"kernels", {{"reed_solomon", speed.kernels.galois->name}, {"xor", speed.kernels.sum->name}}},
                 {"memcpy_GBps", measured->copy},
                 {"rs_32_8", json_of(measured->codes[0], measured->copy)},
                 {"xor_32_8", json_of(measured->codes[1], measured->copy)}};
  Json codes = Json::array();
  for (const CodeSpeed& code : measured->codes) {
    Json one = {{"code", name_of(code.shape)}, {"k", code.shape.k}, {"m", code.shape.m}};
    one.update(json_of(code, measured->copy));
    codes.push_back(std::move(one));
  }
  report["codes"] = std::move(codes);
  if (options.tail) {
    Result<Json> tail = tail_costs(options);
    if (!tail) return tail.error();
    report["tail"] = std::move(tail).value();
  }
  return report;
}

void print_bench_coding(const Json& report) {
  const auto number = [](const Json& of, const char* field) { return of[field].get<double>(); };
  fmt::print("Bytes of data, {} thread{}, {} chunks of {}; medians of {} runs by turns; {} and {}\n",
             report["threads"].get<unsigned>(), report["threads"] == 1 ? "" : "s",
             to_string(Bytes{report["data_bytes"].get<std::uint64_t>()}),
             to_string(Bytes{report["chunk_bytes"].get<std::uint64_t>()}), report["runs"].get<unsigned>(),
             report["kernels"]["reed_solomon"].get<std::string>(), report["kernels"]["xor"].get<std::string>());
  fmt::print("memcpy {:.2f} GB/s\n\n", number(report, "memcpy_GBps"));
  fmt::print("{:<14} {:>12} {:>12} {:>12} {:>8} {:>9} {:>9}\n", "code", "encode GB/s", "decode GB/s", "ISA-L GB/s",
             "/ ISA-L", "/ memcpy", "dec/enc");
  for (const Json& code : report["codes"]) {
    fmt::print("{:<14} {:>12.2f} {:>12.2f} {:>12.2f} {:>8.2f} {:>9.2f} {:>9.2f}\n", code["code"].get<std::string>(),
               number(code, "encode_GBps"), number(code, "decode_GBps"), number(code, "isal_encode_GBps"),
               number(code, "encode_over_isal"), number(code, "encode_over_memcpy"),
               number(code, "decode_over_encode"));
  }
  if (!report.contains("tail")) return;
  fmt::print("\nThe adaptive scheme's tail, RTT 25 ms, chunks of 4096 B, one core:\n");
  fmt::print("{:>9} {:>8} {:>10} {:>12} {:>12} {:>13} {:>13}\n", "rate", "loss", "code", "encode GB/s", "decode GB/s",
             "encode cores", "decode cores");
  for (const Json& cost : report["tail"]) {
    fmt::print("{:>4.0f} Gbit {:>8.0e} {:>10} {:>12.2f} {:>12.2f} {:>13.2f} {:>13.2f}\n", number(cost, "rate_gbps"),
               number(cost, "loss"), fmt::format("{}:{}", cost["k"].get<unsigned>(), cost["m"].get<unsigned>()),
               number(cost, "encode_GBps"), number(cost, "decode_GBps"), number(cost, "encode_cores"),
               number(cost, "decode_cores"));
  }
}

}  // namespace sdr::cli
