#include "sdr/transfer_progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

namespace sdr::cli {

using namespace std::chrono_literals;

namespace {

constexpr Duration kRedraw = 200ms;
constexpr Duration kLineEvery = 5s;
constexpr Duration kRateOver = 3s;

std::string time_left(std::uint64_t bytes, Bandwidth rate) {
  if (bytes == 0) return "finishing";
  if (!rate.limited()) return "-- left";
  const double seconds = std::ceil(static_cast<double>(bytes) * 8 / rate.bits_per_second);
  if (seconds >= 360'000) return "days left";
  const auto s = static_cast<std::uint64_t>(seconds);
  if (s < 60) return fmt::format("{} s left", s);
  if (s < 3600) return fmt::format("{}:{:02} min left", s / 60, s % 60);
  return fmt::format("{}:{:02} h left", s / 3600, s % 3600 / 60);
}

std::size_t width_of(std::FILE* out) {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - 1U : 79;
}

}  // namespace

std::string progress_line(const TransferSample& sample, Bandwidth rate, std::size_t width) {
  const double done =
      sample.total == 0 ? 1.0 : std::min(1.0, static_cast<double>(sample.bytes) / static_cast<double>(sample.total));
  std::string text = fmt::format("{:3.0f} %  {}/{}", std::floor(done * 100), to_string(Bytes{sample.bytes}),
                                 to_string(Bytes{sample.total}));
  if (sample.total_files > 1) text += fmt::format("  {}/{} files", sample.files, sample.total_files);
  text += fmt::format("  {}  {}  loss {:.2f} %  sent again {:.2f} %", to_string(rate),
                      time_left(sample.total - std::min(sample.bytes, sample.total), rate), sample.loss * 100,
                      sample.retransmitted * 100);
  if (width == 0) return text;
  constexpr std::size_t kShortestBar = 10;
  constexpr std::size_t kLongestBar = 30;
  if (text.size() + kShortestBar + 3 <= width) {
    const std::size_t length = std::min(kLongestBar, width - text.size() - 3);
    std::string bar(length, ' ');
    const auto filled = static_cast<std::size_t>(done * static_cast<double>(length));
    std::fill_n(bar.begin(), filled, '=');
    if (filled < length) bar[filled] = '>';
    text = fmt::format("[{}] {}", bar, text);
  }
  return text.substr(0, width);
}

TransferProgress::TransferProgress(std::FILE* out, bool quiet)
    : out_(out),
      style_(quiet                      ? Style::None
             : isatty(fileno(out)) != 0 ? Style::Bar
                                        : Style::Lines) {}

void TransferProgress::show(TimePoint now, const TransferSample& sample) {
  if (style_ == Style::None || now < next_) return;
  const bool first = marks_.empty();
  const Bandwidth speed = rate(now, sample.bytes);
  if (style_ == Style::Bar) {
    next_ = now + kRedraw;
    fmt::print(out_, "\r{}\033[K", progress_line(sample, speed, width_of(out_)));
    drawn_ = true;
  } else {
    next_ = now + kLineEvery;
    if (first) return;  // nothing is known yet, and short transfers need no lines
    fmt::print(out_, "{}\n", progress_line(sample, speed, 0));
  }
  std::fflush(out_);
}

void TransferProgress::clear() {
  if (!drawn_) return;
  fmt::print(out_, "\r\033[K");
  std::fflush(out_);
  drawn_ = false;
}

Bandwidth TransferProgress::rate(TimePoint now, std::uint64_t bytes) {
  marks_.push_back({now, bytes});
  while (marks_.size() > 2 && marks_.front().at < now - kRateOver) marks_.pop_front();
  const Mark& since = marks_.front();
  const double seconds = std::chrono::duration<double>(now - since.at).count();
  if (seconds <= 0 || bytes < since.bytes) return {};
  return {static_cast<double>(bytes - since.bytes) * 8 / seconds};
}

}  // namespace sdr::cli
