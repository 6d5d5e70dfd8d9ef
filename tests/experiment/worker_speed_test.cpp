// The loads behind `worker` and `turnaround` figures do what they say; how fast is for the benchmarks.
#include "experiment/worker_speed.hpp"

#include <gtest/gtest.h>

#include "experiment/turnaround_speed.hpp"

namespace sdr::experiment {
namespace {

TEST(WorkerLoad, FillsEveryMessageWhateverTheOrder) {
  for (const WorkerKind kind : {WorkerKind::Batched, WorkerKind::AtomicPerPacket}) {
    for (const WorkerLoadOptions options : {WorkerLoadOptions{},
                                            {.packets_per_chunk = 1},
                                            {.packets_per_chunk = 256},
                                            {.window = 64},
                                            {.packets_per_chunk = 1, .window = 2048},
                                            {.interleaved = 4},
                                            {.window = 2048, .interleaved = 16}}) {
      WorkerLoad load(options, kind);
      for (int run = 0; run < 3; ++run) {
        EXPECT_TRUE(load.run_once()) << options.packets_per_chunk << " packets a chunk, window " << options.window
                                     << ", interleaved " << options.interleaved;
      }
    }
  }
}

TEST(WorkerSpeed, MeasuresEveryCell) {
  const WorkerSpeed speed = measure_worker_speed(1, std::chrono::microseconds(100));
  EXPECT_GT(speed.in_order_mpps, 0);
  EXPECT_GT(speed.shuffled_mpps, 0);
  EXPECT_GT(speed.one_packet_chunks_mpps, 0);
  EXPECT_GT(speed.atomic_per_packet_mpps, 0);
  EXPECT_GT(speed.atomic_shuffled_mpps, 0);
}

TEST(TurnaroundLoad, RefusesMessagesBeyondItsLimits) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, TurnaroundLoad::kLargest.count + 1}) {
    const auto load = TurnaroundLoad::make(Bytes{bytes});
    ASSERT_FALSE(load.ok());
    EXPECT_EQ(load.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(load.error().message.find(std::to_string(bytes)), std::string::npos) << load.error().message;
  }
}

TEST(TurnaroundSpeed, HasAPointForEverySizeFrom64BytesToAGigabyte) {
  const auto speed = measure_turnaround_speed(1, 1);
  ASSERT_TRUE(speed.ok()) << speed.error().message;
  ASSERT_EQ(speed->points.size(), 13U);
  EXPECT_EQ(speed->points.front().message_bytes, 64U);
  EXPECT_EQ(speed->points.back().message_bytes, 1ULL << 30);
  for (const TurnaroundPoint& point : speed->points) {
    EXPECT_GT(point.post_complete_ns, 0) << point.message_bytes;
    EXPECT_GT(point.untouched_post_complete_ns, 0) << point.message_bytes;
  }
}

}  // namespace
}  // namespace sdr::experiment
