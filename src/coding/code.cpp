#include "coding/code.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "coding/reed_solomon.hpp"
#include "coding/xor_code.hpp"

namespace sdr::coding {
namespace {

Error invalid(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

Error no_memory() {
  return {ErrorCode::System, "no memory for the tables of the erasure code"};
}

std::string name_of(const CodeShape& shape) {
  return (shape.kind == CodeKind::Xor ? "XOR(" : "Reed-Solomon(") + std::to_string(shape.k) + "," +
         std::to_string(shape.m) + ")";
}

Result<void> check_shape(const CodeShape& shape) {
  if (shape.k < 1 || shape.m < 1) return invalid(name_of(shape) + ": needs at least one data and one parity shard");
  if (shape.k > kMaxShards || shape.m > kMaxShards || shape.k + shape.m > kMaxShards) {
    return invalid(name_of(shape) + ": data and parity shards together are more than " + std::to_string(kMaxShards));
  }
  if (shape.kind == CodeKind::Xor && shape.m > shape.k) {
    return invalid(name_of(shape) + ": an XOR code cannot have more parity than data shards");
  }
  return {};
}

Result<void> check_block(const CodeShape& shape, std::size_t data_shards, ShardLength length) {
  if (data_shards < 1 || data_shards > shape.k) {
    return invalid(name_of(shape) + ": a block of " + std::to_string(data_shards) + " data shards, the limit is 1 to " +
                   std::to_string(shape.k));
  }
  if (length.last > length.full) {
    return invalid(name_of(shape) + ": the last shard of " + std::to_string(length.last) +
                   " bytes is longer than the others of " + std::to_string(length.full));
  }
  return {};
}

}  // namespace

ErasureCode::ErasureCode(CodeShape shape, const XorSum* sum, std::shared_ptr<const ReedSolomon> reed_solomon)
    : shape_(shape), sum_(sum), reed_solomon_(std::move(reed_solomon)) {}

XorCode ErasureCode::xor_code() const {
  return {shape_.m, *sum_};
}

Result<ErasureCode> ErasureCode::create(CodeShape shape, const CodeKernels& kernels) {
  if (const auto checked = check_shape(shape); !checked) return checked.error();
  if (shape.kind == CodeKind::Xor) return ErasureCode(shape, kernels.sum, nullptr);
  try {
    return ErasureCode(shape, kernels.sum, std::make_shared<const ReedSolomon>(shape.k, shape.m, *kernels.galois));
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<void> ErasureCode::encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity,
                                 ShardLength length, unsigned first_parity) const {
  if (auto checked = check_block(shape_, data.size(), length); !checked) return checked;
  if (first_parity > shape_.m || parity.size() > shape_.m - first_parity) {
    return invalid(name_of(shape_) + ": " + std::to_string(parity.size()) + " parity shards from number " +
                   std::to_string(first_parity) + " on, the code has " + std::to_string(shape_.m));
  }
  if (parity.empty()) return {};
  const bool done = reed_solomon_ ? reed_solomon_->encode(data, parity, length, first_parity)
                                  : xor_code().encode(data, parity, length, first_parity);
  return done ? Result<void>() : no_memory();
}

bool ErasureCode::can_decode(const ShardSet& data_present, const ShardSet& parity_present, unsigned data_shards) const {
  return needed(data_present, parity_present, data_shards).count == 0;
}

Needed ErasureCode::needed(const ShardSet& data_present, const ShardSet& parity_present, unsigned data_shards) const {
  const ShardSet missing = first_shards(std::min(data_shards, shape_.k)) & ~data_present;
  const ShardSet parity = parity_present & first_shards(shape_.m);
  Needed needed;
  if (shape_.kind == CodeKind::Xor) {
    needed.shards = xor_code().needed(missing, parity);
    needed.count = static_cast<unsigned>(needed.shards.count());
    return needed;
  }
  const std::size_t held = parity.count();
  const std::size_t lost = missing.count();
  needed.any = true;
  needed.count = static_cast<unsigned>(lost > held ? lost - held : 0);
  for (std::size_t j = 0, chosen = 0; chosen < needed.count; ++j) {
    if (!missing[j]) continue;
    needed.shards.set(j);
    ++chosen;
  }
  return needed;
}

Result<void> ErasureCode::decode(std::span<std::byte* const> data, const ShardSet& data_present,
                                 std::span<const std::byte* const> parity, const ShardSet& parity_present,
                                 ShardLength length) const {
  if (auto checked = check_block(shape_, data.size(), length); !checked) return checked;
  const auto data_shards = static_cast<unsigned>(data.size());
  const std::size_t parity_given = std::min<std::size_t>(parity.size(), shape_.m);
  const ShardSet usable = parity_present & first_shards(static_cast<unsigned>(parity_given));
  if (const Needed lacking = needed(data_present, usable, data_shards); lacking.count > 0) {
    const std::size_t lost = (first_shards(data_shards) & ~data_present).count();
    return invalid(name_of(shape_) + ": " + std::to_string(lost) + " of " + std::to_string(data_shards) +
                   " data shards are missing, " + std::to_string(lacking.count) + " more than the " +
                   std::to_string(usable.count()) + " parity shards held can restore");
  }
  const bool done = reed_solomon_ ? reed_solomon_->decode(data, data_present, parity, usable, length)
                                  : xor_code().decode(data, data_present, parity, usable, length);
  return done ? Result<void>() : no_memory();
}

}  // namespace sdr::coding
