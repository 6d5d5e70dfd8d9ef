#include "sdr/path_rate.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "reliability/background_rate.hpp"
#include "reliability/fixed_rate.hpp"
#include "reliability/model_rate.hpp"
#include "reliability/rate_group.hpp"

namespace sdr {
namespace {

constexpr std::array<std::pair<RateMode, std::string_view>, 4> kModes = {{{RateMode::Automatic, "automatic"},
                                                                          {RateMode::Fixed, "fixed"},
                                                                          {RateMode::Model, "model"},
                                                                          {RateMode::Background, "background"}}};

std::unique_ptr<reliability::RateController> make_controller(const PathRate::Options& options) {
  if (options.mode == RateMode::Fixed) return std::make_unique<reliability::FixedRate>(options.most);
  if (options.mode == RateMode::Background)
    return std::make_unique<reliability::BackgroundRate>(reliability::BackgroundRate::Options{.most = options.most});
  return std::make_unique<reliability::ModelRate>(
      reliability::ModelRate::Options{.most = options.most, .seed = options.seed});
}

}  // namespace

Result<RateMode> parse_rate_mode(std::string_view name) {
  for (const auto& [mode, text] : kModes)
    if (text == name) return mode;
  return Error{ErrorCode::InvalidArgument,
               fmt::format("unknown rate control \"{}\"; there are automatic, fixed, model, background", name)};
}

std::string_view to_string(RateMode mode) {
  for (const auto& [known, text] : kModes)
    if (known == mode) return text;
  return "unknown";
}

PathRate::PathRate(const Options& options)
    : group_(std::make_shared<reliability::RateGroup>(
          options.mode == RateMode::Automatic ? RateMode::Model : options.mode, make_controller(options))) {}
PathRate::~PathRate() = default;

RateStatus PathRate::status() const {
  return group_->status();
}

}  // namespace sdr
