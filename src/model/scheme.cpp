#include "model/scheme.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace sdr::model {
namespace {

constexpr unsigned kMostShards = 255;  // distinct points of GF(2^8)

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

Result<void> check_shape(const SchemeSpec& scheme) {
  const unsigned k = scheme.data_chunks;
  const unsigned m = scheme.parity_chunks;
  if (k < 1 || k >= kMostShards) return refused(fmt::format("k {} is not from 1 to {}", k, kMostShards - 1));
  if (m < 1 || m >= kMostShards) return refused(fmt::format("m {} is not from 1 to {}", m, kMostShards - 1));
  if (k + m > kMostShards) return refused(fmt::format("k + m = {} + {} is more than {}", k, m, kMostShards));
  if (scheme.kind == SchemeKind::EcXor && m > k) {
    return refused(fmt::format("m {} of ec-xor is not from 1 to k = {}", m, k));
  }
  if (scheme.kind == SchemeKind::EcXor && k % m != 0) {
    return refused(fmt::format("k {} of ec-xor is not a multiple of m = {}", k, m));
  }
  return {};
}

}  // namespace

std::string_view to_string(SchemeKind kind) {
  switch (kind) {
    case SchemeKind::SrRto:
      return "sr-rto";
    case SchemeKind::SrNack:
      return "sr-nack";
    case SchemeKind::EcXor:
      return "ec-xor";
    case SchemeKind::EcRs:
      return "ec-rs";
    case SchemeKind::Adaptive:
      return "adaptive";
  }
  return "unknown";
}

Result<void> check(const SchemeSpec& scheme) {
  if (!(scheme.rto_rtts >= 0 && scheme.rto_rtts <= 100)) {
    return refused(fmt::format("rto {} RTTs is not from 0 to 100", scheme.rto_rtts));
  }
  if (!(scheme.fallback_beta >= 0 && scheme.fallback_beta <= 100)) {
    return refused(fmt::format("beta {} RTTs is not from 0 to 100", scheme.fallback_beta));
  }
  if (!(scheme.repair_target > 0 && scheme.repair_target < 1)) {
    return refused(fmt::format("repair target {} is not above 0 and below 1", scheme.repair_target));
  }
  if (!(scheme.max_overhead >= 0 && scheme.max_overhead <= 1)) {
    return refused(fmt::format("overhead {} is not from 0 to 1", scheme.max_overhead));
  }
  return scheme.coded() ? check_shape(scheme) : Result<void>{};
}

}  // namespace sdr::model
