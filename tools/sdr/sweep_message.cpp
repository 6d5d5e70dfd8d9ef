#include "sdr/sweep_message.hpp"

namespace sdr::cli {

std::string SweepMessage::text() const {
  const Json json = {{"kind", static_cast<unsigned>(kind)}, {"cell", cell}, {"content", content}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<SweepMessage> SweepMessage::parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("kind") || !json.contains("cell") || !json.contains("content"))
    return std::nullopt;
  const Json& kind = json["kind"];
  if (!kind.is_number_unsigned() || kind.get<std::uint64_t>() > static_cast<std::uint64_t>(Kind::Refuse) ||
      !json["cell"].is_number_unsigned()) {
    return std::nullopt;
  }
  return SweepMessage{.kind = static_cast<Kind>(kind.get<unsigned>()),
                      .cell = json["cell"].get<std::uint64_t>(),
                      .content = json["content"]};
}

}  // namespace sdr::cli
