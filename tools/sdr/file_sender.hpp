// FileSender: the sending end of a transfer.
//
//   says                                     hears
//   entries, entries_end                     what there is to receive, in pages
//                                            found, sums, sums_end 1      what the receiver has of it
//                                            (transfer_compare.hpp)
//   refine, refine_end                       ask again, where units differ   sums, sums_end 2
//   missing, begin                           what will be sent; from here on both walk the same steps
//   (transfer_plan.hpp) digest | failed, a file                  placed | failed, a file      each as soon as it is
//   known
//                                            done                         the end
//
// The bytes go from the mapped source straight into Writes. A source that changes underway is found out at its end and
// reported to both, without spoiling the other files.
//
// Threads: the loop's; jobs on the worker see only what they were given.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sdr/file_manifest.hpp"
#include "sdr/file_mapping.hpp"
#include "sdr/transfer_compare.hpp"
#include "sdr/transfer_loop.hpp"
#include "sdr/transfer_plan.hpp"
#include "sdr/transfer_record.hpp"

namespace sdr::cli {

class FileSender final : public TransferSide {
 public:
  FileSender(std::span<const SourceFile> sources, TransferLoop& loop, TransferRecord& record);

  // Says what there is to receive.
  void begin();

  Result<void> hear(const Json& message) override;
  Result<void> advance() override;
  [[nodiscard]] bool finished() const override { return done_; }
  TransferSample sample() override;
  [[nodiscard]] Json alive() const override;

 private:
  struct Source;
  struct InFlight {
    std::shared_ptr<Source> source;
    Range range;
  };

  Result<void> hear_sums(const Json& message);
  void compare(SumPage page);
  void after_sums(std::uint64_t round);
  void make_plan();
  Result<void> post_step(const Step& step, bool& posted);
  Result<void> take_completions();
  void finish(const std::shared_ptr<Source>& source);
  Result<std::uint32_t> file_of(const Json& message) const;

  std::span<const SourceFile> sources_;
  TransferLoop& loop_;
  TransferRecord& record_;

  std::set<std::uint32_t> complete_;         // of which the receiver has something under the final name
  std::map<std::uint32_t, Ranges> held_;     // what the receiver has, by comparison
  std::map<std::uint32_t, Ranges> differs_;  // units to ask again about
  std::map<std::uint32_t, Ranges> missing_;  // of files that the receiver has something of
  std::shared_ptr<Source> compared_;         // the worker's: the source compared last

  std::optional<StepCursor> cursor_;  // once the plan is made
  std::map<std::uint32_t, std::shared_ptr<Source>> open_;
  std::map<std::uint64_t, InFlight> in_flight_;  // by Write
  std::uint64_t bytes_in_flight_ = 0;
  bool done_ = false;
};

}  // namespace sdr::cli
