#include "vk-provider/core/refusal.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace spillway::core {
namespace {

using model::Capability;

constexpr size_t kMaxEvent = 1024;
constexpr size_t kMaxTail = 200;  // what is said when parts are left out

/// The capabilities that the pod needs and the provider lacks, in the order of their fields.
std::vector<Lack> lacks_of(const model::PodSpec& pod, const Requirements& requirements,
                           const model::CapabilitySet& capabilities) {
  std::vector<Lack> out;
  for (const auto* uses : {&pod.uses, &requirements.implied}) {
    for (const model::FieldUse& use : *uses) {
      if (!use.needs || capabilities.has(*use.needs)) continue;
      auto lack = std::ranges::find(out, *use.needs, &Lack::capability);
      if (lack == out.end()) lack = out.insert(out.end(), Lack{*use.needs, {}, use.why});
      lack->paths.push_back(use.path);
    }
  }
  return out;
}

std::string words_of(const Lack& lack) {
  return fmt::format("{} ({})", to_string(lack.capability), fmt::join(lack.paths, ", "));
}

std::vector<std::string> parts_of(const Verdict& verdict) {
  std::vector<std::string> out;
  for (const Fault& fault : verdict.faults) out.push_back(fault.path + ": " + fault.why);
  for (const Verdict::OfProvider& provider : verdict.providers) {
    if (provider.lacks.empty()) continue;
    std::vector<std::string> words;
    for (const Lack& lack : provider.lacks) words.push_back(words_of(lack));
    out.push_back(fmt::format("provider {} lacks {}", provider.name, fmt::join(words, ", ")));
  }
  return out;
}

std::string remedy_of(const Verdict& verdict) {
  if (verdict.only_images) return "correct the name";
  const bool lacking = std::ranges::any_of(verdict.providers, [](const auto& p) { return !p.lacks.empty(); });
  if (verdict.providers.empty()) return "configure a provider";
  if (!lacking) return "change or remove these fields";
  return verdict.faults.empty() ? "change or remove these fields, or configure a provider that has what is lacking"
                                : "change or remove these fields; what providers lack, another one may have";
}

/// Cuts between characters, not inside one.
void cut(std::string& text, size_t size) {
  if (text.size() <= size) return;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
  text.resize(size);
}

std::string message_of(const Verdict& verdict) {
  const std::vector<std::string> parts = parts_of(verdict);
  std::string text = "Pod was rejected: ";
  for (size_t i = 0; i < parts.size(); ++i) {
    if (text.size() + parts[i].size() + kMaxTail > kMaxRefusal) {
      if (i == 0) text += parts[0];
      cut(text, kMaxRefusal - kMaxTail);
      text += fmt::format("... and {} more; ", parts.size() - i);
      break;
    }
    text += parts[i] + "; ";
  }
  return text + "to have it run, " + remedy_of(verdict);
}

}  // namespace

bool Verdict::refused() const {
  return !faults.empty() || std::ranges::none_of(providers, [](const auto& p) { return p.lacks.empty(); });
}

Verdict judge(const model::PodSpec& pod, const Requirements& requirements,
              const std::vector<ProviderAbility>& providers) {
  Verdict verdict;
  verdict.faults = requirements.faults;
  for (const ProviderAbility& provider : providers) {
    verdict.providers.push_back({provider.name, lacks_of(pod, requirements, provider.capabilities)});
  }
  verdict.only_images = !requirements.bad_images.empty() && !verdict.refused();
  verdict.faults.insert(verdict.faults.end(), requirements.bad_images.begin(), requirements.bad_images.end());
  return verdict;
}

std::optional<Refusal> refusal(const model::PodSpec& pod, const Requirements& requirements,
                               const std::vector<ProviderAbility>& providers) {
  const auto can = [&](const ProviderAbility& p) { return p.capabilities.covers(requirements.capabilities); };
  if (requirements.faults.empty() && requirements.bad_images.empty() && std::ranges::any_of(providers, can)) {
    return std::nullopt;
  }
  const Verdict verdict = judge(pod, requirements, providers);
  return Refusal{verdict.only_images ? model::WaitReason::kInvalidImage : model::WaitReason::kRefused,
                 message_of(verdict)};
}

std::string event_text_of(std::string message) {
  if (message.size() <= kMaxEvent) return message;
  constexpr std::string_view kRest = "... (the pod's status has all of it)";
  cut(message, kMaxEvent - kRest.size());
  return message + std::string(kRest);
}

}  // namespace spillway::core
