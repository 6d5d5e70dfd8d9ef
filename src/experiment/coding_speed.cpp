#include "experiment/coding_speed.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

#include "coding/parity_budget.hpp"
#include "coding/parity_plan.hpp"
#include "coding/rival.hpp"
#include "experiment/race.hpp"
#include "experiment/touched_memory.hpp"
#include "runtime/thread.hpp"

namespace sdr::experiment {
namespace {

using coding::CodeKind;
using coding::CodeShape;
using coding::ErasureCode;
using coding::kMaxShards;
using coding::ShardLength;
using coding::ShardSet;

constexpr std::size_t kPage = 4096;
constexpr double kGiga = 1e9;

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

// Memory that begins on a page, every page of which is there: an untouched one would be the page of zeros.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : memory_(new std::byte[bytes + kPage]), bytes_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    begin_ = memory_.get() + (kPage - address % kPage) % kPage;
    for (std::size_t i = 0; i < bytes; ++i) begin_[i] = static_cast<std::byte>(i * 31 + (i >> 12));
  }
  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_;
  std::byte* begin_ = nullptr;
};

// The chunks of a submessage lie so far apart: one after another, or a chunk of every submessage in turn.
struct Arrangement {
  std::size_t blocks = 0;
  std::size_t chunk = 0;
  bool interleaved = false;

  [[nodiscard]] std::byte* at(std::byte* begin, std::size_t block, std::size_t shard, std::size_t shards) const {
    return begin + (interleaved ? shard * blocks + block : block * shards + shard) * chunk;
  }
};

// One code on the buffers that all share.
class Coding {
 public:
  Coding(ErasureCode code, const Arrangement& arrangement, std::byte* data, std::byte* parity)
      : code_(std::move(code)), arrangement_(arrangement), data_(data), parity_(parity) {}

  [[nodiscard]] std::size_t blocks() const { return arrangement_.blocks; }

  void point_at(std::size_t block) {
    const CodeShape& shape = code_.shape();
    for (unsigned j = 0; j < shape.k; ++j) readable_[j] = writable_[j] = arrangement_.at(data_, block, j, shape.k);
    for (unsigned i = 0; i < shape.m; ++i) held_[i] = into_[i] = arrangement_.at(parity_, block, i, shape.m);
  }
  void encode(std::size_t block) {
    point_at(block);
    const CodeShape& shape = code_.shape();
    (void)code_.encode({readable_.data(), shape.k}, {into_.data(), shape.m}, ShardLength(arrangement_.chunk));
  }
  void decode(std::size_t block, const ShardSet& present) {
    point_at(block);
    const CodeShape& shape = code_.shape();
    (void)code_.decode({writable_.data(), shape.k}, present, {held_.data(), shape.m}, coding::first_shards(shape.m),
                       ShardLength(arrangement_.chunk));
  }
  void encode_by(const coding::Rival& rival, std::size_t block) {
    point_at(block);
    const CodeShape& shape = code_.shape();
    rival.encode({readable_.data(), shape.k}, {into_.data(), shape.m}, arrangement_.chunk);
  }

 private:
  ErasureCode code_;
  Arrangement arrangement_;
  std::byte* data_;
  std::byte* parity_;
  std::array<const std::byte*, kMaxShards> readable_{};
  std::array<std::byte*, kMaxShards> writable_{};
  std::array<const std::byte*, kMaxShards> held_{};
  std::array<std::byte*, kMaxShards> into_{};
};

// work(first, end) of so many items, dealt out among threads.
template <typename Work>
void share(unsigned threads, std::size_t items, const Work& work) {
  const auto first_of = [&](unsigned thread) { return items * thread / threads; };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t)
    others.push_back(
        runtime::start_thread("sdr-coding", [&work, &first_of, t] { work(first_of(t), first_of(t + 1)); }));
  work(0, first_of(1));
  for (std::thread& other : others) other.join();
}

// As many missing as the code restores: the first of every m-th part, or of every group.
ShardSet all_but_the_most(const CodeShape& shape) {
  ShardSet present = coding::first_shards(shape.k);
  const unsigned most = std::min(shape.k, shape.m);
  for (unsigned i = 0; i < most; ++i) present.reset(shape.kind == CodeKind::Xor ? i : i * shape.k / most);
  return present;
}

Result<void> check(const CodingSpeedOptions& options) {
  if (options.chunk.count < 64 || options.chunk.count > (1U << 24) || options.chunk.count % 64 != 0)
    return refused("chunk " + std::to_string(options.chunk.count) + " bytes is not a multiple of 64 from 64 to 16 MiB");
  if (options.threads < 1) return refused("threads 0 is not at least 1");
  if (Result<void> fits = fits_in_memory(2, options.data); !fits) return fits;
  for (const CodeShape& shape : options.shapes) {
    if (shape.m > shape.k)
      return refused("Reed-Solomon(" + std::to_string(shape.k) + "," + std::to_string(shape.m) +
                     ") has more parity than data; the parity measured may be as much as the data");
    const std::uint64_t block = options.chunk.count * shape.k;
    if (block == 0 || options.data.count / block < options.threads)
      return refused("data " + to_string(options.data) + " is less than a block of " + std::to_string(shape.k) +
                     " chunks of " + to_string(options.chunk) + " for each of " + std::to_string(options.threads) +
                     " threads");
  }
  return {};
}

double speed(std::size_t bytes, double seconds) {
  return static_cast<double>(bytes) / kGiga / seconds;
}

// The three contestants of a code.
void enter(std::vector<std::function<void()>>& contestants, const Coding& coding, const CodeShape& shape,
           unsigned threads) {
  contestants.emplace_back([coding, threads] {
    share(threads, coding.blocks(), [&](std::size_t first, std::size_t end) {
      for (Coding mine = coding; first < end; ++first) mine.encode(first);
    });
  });
  contestants.emplace_back([coding, threads, present = all_but_the_most(shape)] {
    share(threads, coding.blocks(), [&](std::size_t first, std::size_t end) {
      for (Coding mine = coding; first < end; ++first) mine.decode(first, present);
    });
  });
  contestants.emplace_back([coding, threads, rival = coding::Rival(shape)] {
    share(threads, coding.blocks(), [&](std::size_t first, std::size_t end) {
      for (Coding mine = coding; first < end; ++first) mine.encode_by(rival, first);
    });
  });
}

}  // namespace

Result<CodingSpeed> measure_coding_speed(const CodingSpeedOptions& options) {
  if (const Result<void> checked = check(options); !checked) return checked.error();
  const Pages data(options.data.count);
  const Pages copy(options.data.count);  // also of the parity: there is no code here with more parity than data
  std::vector<std::function<void()>> contestants;
  contestants.emplace_back([&] {
    share(options.threads, data.size() / kPage, [&](std::size_t first, std::size_t end) {
      std::memcpy(copy.begin() + first * kPage, data.begin() + first * kPage, (end - first) * kPage);
    });
  });
  std::vector<std::size_t> bytes;
  for (const CodeShape& shape : options.shapes) {
    const Result<ErasureCode> code = ErasureCode::create(shape, options.kernels);
    if (!code) return code.error();
    const Arrangement arrangement{options.data.count / (options.chunk.count * shape.k), options.chunk.count, false};
    bytes.push_back(arrangement.blocks * shape.k * options.chunk.count);
    enter(contestants, Coding(*code, arrangement, data.begin(), copy.begin()), shape, options.threads);
  }
  const std::vector<double> seconds = race(contestants, options.runs, options.each);
  CodingSpeed measured;
  measured.copy = speed(data.size() / kPage * kPage, seconds[0]);
  for (std::size_t c = 0; c < options.shapes.size(); ++c) {
    const double* of_code = &seconds[1 + 3 * c];
    measured.codes.push_back(
        {options.shapes[c], speed(bytes[c], of_code[0]), speed(bytes[c], of_code[1]), speed(bytes[c], of_code[2])});
  }
  return measured;
}

Result<TailCost> measure_tail_cost(Bandwidth rate, double loss, const TailOptions& options) {
  constexpr std::size_t kMostData = std::size_t{128} << 20;  // beyond the caches; more of it is no different
  const std::uint64_t exposed =
      rate.bytes_in(std::chrono::duration_cast<Duration>(options.rtt * coding::kNoticeRtts)).count;
  const auto chunks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(exposed / options.chunk.count, 1, 1U << 30));
  const auto room = static_cast<std::uint32_t>(coding::parity_room(chunks));
  const coding::ParityPlan plan = coding::plan_parity(chunks, {loss, 1}, options.target, room);
  if (plan.submessages == 0 || plan.parity_each == 0) return refused("a loss of nothing needs no parity");
  TailCost cost{.rate = rate, .loss = loss, .m = plan.parity_each, .submessages = plan.submessages};
  cost.k = (chunks + plan.submessages - 1) / plan.submessages;
  const Result<ErasureCode> code = ErasureCode::create({CodeKind::ReedSolomon, cost.k, cost.m});
  if (!code) return code.error();

  const std::size_t block = options.chunk.count * cost.k;
  const std::size_t blocks = std::clamp<std::size_t>(kMostData / block, 1, plan.submessages);
  const Pages data(blocks * block);
  const Pages parity(blocks * options.chunk.count * cost.m);
  Coding coding(*code, {blocks, options.chunk.count, true}, data.begin(), parity.begin());
  // Losses by a fixed sequence, at the rate in question: the same on every machine.
  std::vector<ShardSet> present(blocks, coding::first_shards(cost.k));
  std::uint64_t draw = 0x9e3779b97f4a7c15;
  for (ShardSet& of_block : present) {
    for (unsigned j = 0, lost = 0; j < cost.k && lost < cost.m; ++j) {
      draw = draw * 6364136223846793005 + 1442695040888963407;
      if (static_cast<double>(draw >> 11) * 0x1p-53 >= loss) continue;
      of_block.reset(j);
      ++lost;
    }
  }
  const auto all_present = coding::first_shards(cost.k);
  const std::vector<double> seconds = race({[&] {
                                              for (std::size_t b = 0; b < blocks; ++b) coding.encode(b);
                                            },
                                            [&] {
                                              for (std::size_t b = 0; b < blocks; ++b)
                                                if (present[b] != all_present) coding.decode(b, present[b]);
                                            }},
                                           options.runs, options.each);
  const double wire_GBps = rate.bits_per_second / 8 / kGiga;
  cost.encode = speed(data.size(), seconds[0]);
  cost.decode = speed(data.size(), seconds[1]);
  cost.encode_cores = wire_GBps / cost.encode;
  cost.decode_cores = wire_GBps / cost.decode;
  return cost;
}

}  // namespace sdr::experiment
