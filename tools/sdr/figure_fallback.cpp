// Figure 11, its fallback part: how likely the parity of a Write does not suffice, over loss.
#include <fmt/format.h>

#include "model/completion_time.hpp"
#include "sdr/figure_catalogue.hpp"
#include "sdr/figure_parts.hpp"

namespace sdr::cli {
namespace {

Question fallback_of(const model::SchemeSpec& scheme, double loss, Bytes chunk) {
  model::PathSpec path = paper_path(loss);
  path.chunk = chunk;
  return {Statistic::Fallback, {scheme, path, kPaperMessage}, {}};
}

// The loss at which a tenth of the Writes fall back.
double onset(const model::SchemeSpec& scheme) {
  return crossing(1e-6, 0.5, [&](double loss) { return theory(fallback_of(scheme, loss, 4_KiB)) - 0.1; });
}

}  // namespace

Figure figure_11(const FigureOptions&) {
  Figure figure;
  figure.id = "11";
  figure.title = "Probability that a Write of 128 MiB falls back, over loss";
  figure.caption =
      "The part of the paper's Figure 11 that is theory; its throughput part is measured by the benchmarks. "
      "Chunks of 4 KiB, one packet, as in the other figures, and of 64 KiB, 16 packets, any of which takes "
      "its chunk with it.";
  figure.x = loss_axis(1e-5, 1e-1);
  figure.y = {"probability of fallback", Unit::Probability, true, 1e-9, 2};
  const auto add = [&](const Contender& who, Bytes chunk, const char* chunk_text, const char* colour, bool simulate) {
    std::vector<Place> places = loss_places(-5, -1);
    for (Place& place : places) {
      const bool onset_of_xor = place.x > 0.99e-3 && place.x < 2.1e-3;
      const bool onset_of_mds = place.x > 2.9e-2 && place.x < 5.1e-2;
      place.simulate =
          simulate && place.draw && (who.scheme.kind == model::SchemeKind::EcXor ? onset_of_xor : onset_of_mds);
    }
    figure.series.push_back(series_of(fmt::format("{}, {}", who.name, chunk_text), colour, places,
                                      [&](double loss) { return fallback_of(who.scheme, loss, chunk); }));
  };
  add(ec_xor(), 4_KiB, "4 KiB", ec_xor().colour.c_str(), true);
  add(ec_mds(), 4_KiB, "4 KiB", ec_mds().colour.c_str(), true);
  add(ec_xor(), 64_KiB, "64 KiB", kVermillion, false);
  add(ec_mds(), 64_KiB, "64 KiB", kBlue, false);
  const auto xor_at = [](double loss) {
    return to_string(theory(fallback_of(ec_xor().scheme, loss, 4_KiB)), Unit::Probability);
  };
  const auto mds_at = [](double loss) {
    return to_string(theory(fallback_of(ec_mds().scheme, loss, 4_KiB)), Unit::Probability);
  };
  figure.statements.push_back(
      {"XOR falls back from about", "1e-3", Unit::Probability, 0.5e-3, 2e-3, onset(ec_xor().scheme),
       fmt::format("The loss at which a tenth of the Writes fall back: {} of them at 1e-4, {} at 1e-3.", xor_at(1e-4),
                   xor_at(1e-3))});
  figure.statements.push_back(
      {"MDS falls back beyond", "1e-2", Unit::Probability, 1e-2, 1, onset(ec_mds().scheme),
       fmt::format("The loss at which a tenth of the Writes fall back: {} of them at 1e-2, {} at 2e-2.", mds_at(1e-2),
                   mds_at(2e-2))});
  return figure;
}

}  // namespace sdr::cli
