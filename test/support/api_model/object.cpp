#include "test/support/api_model/object.hpp"

#include <utility>

namespace spillway::test::api_model {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 3> kNames = {"metadata", "spec", "status"};

size_t index_of(Slot slot) { return static_cast<size_t>(slot); }

json join(const std::array<const json*, kSlots.size()>& parts) {
  const json& rest = *parts[index_of(Slot::kRest)];
  json out = rest.is_null() ? json::object() : rest;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (!parts[i]->is_null()) out[kNames[i]] = *parts[i];
  }
  return out;
}

}  // namespace

Slot slot_of(std::string_view member) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (member == kNames[i]) return kSlots[i];
  }
  return Slot::kRest;
}

const std::string& Part::text() const {
  if (encoded.empty()) encoded = value.dump();
  return encoded;
}

const json& Object::part(Slot slot) const {
  static const json nothing;
  const auto& part = parts_[index_of(slot)];
  return part ? part->value : nothing;
}

const std::string& Object::ns() const {
  static const std::string nothing;
  const auto it = metadata().find("namespace");
  return it == metadata().end() ? nothing : it->get_ref<const std::string&>();
}

std::string Object::key() const { return ns().empty() ? name() : ns() + "/" + name(); }

json Object::whole() const {
  json out = join({&metadata(), &spec(), &status(), &part(Slot::kRest)});
  out["metadata"]["resourceVersion"] = std::to_string(version_);
  return out;
}

std::string Object::versioned_metadata() const {
  std::string out = parts_[index_of(Slot::kMetadata)]->text();
  out.pop_back();
  return out.append(R"(,"resourceVersion":")").append(std::to_string(version_)).append("\"}");
}

std::string Object::item_text() const {
  std::string out = R"({"metadata":)" + versioned_metadata();
  for (const Slot slot : {Slot::kSpec, Slot::kStatus}) {
    const auto& part = parts_[index_of(slot)];
    if (part) out.append(",\"").append(kNames[index_of(slot)]).append("\":").append(part->text());
  }
  const auto& rest = parts_[index_of(Slot::kRest)];
  if (rest && !rest->value.empty()) return out.append(",").append(rest->text(), 1);
  return out.append("}");
}

std::string Object::text() const {
  std::string out = R"({"kind":")";
  out.append(resource_.kind).append(R"(","apiVersion":")").append(resource_.api_version).append(R"(",)");
  return out.append(item_text(), 1);
}

std::string Object::metadata_text() const {
  return R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":)" + versioned_metadata() + "}";
}

Draft::Draft(json whole) {
  whole.erase("kind");
  whole.erase("apiVersion");
  for (size_t i = 0; i < kNames.size(); ++i) {
    const auto it = whole.find(kNames[i]);
    if (it == whole.end()) continue;
    edited_[i] = std::make_shared<Part>(std::move(*it));
    whole.erase(it);
  }
  if (!whole.empty()) edited_[index_of(Slot::kRest)] = std::make_shared<Part>(std::move(whole));
}

const json& Draft::part(Slot slot) const {
  static const json nothing;
  const size_t i = index_of(slot);
  if (edited_[i]) return edited_[i]->value;
  return parts_[i] ? parts_[i]->value : nothing;
}

json& Draft::edit(Slot slot) {
  const size_t i = index_of(slot);
  if (!edited_[i]) edited_[i] = std::make_shared<Part>(parts_[i] ? parts_[i]->value : json());
  return edited_[i]->value;
}

void Draft::restore(Slot slot, const Object& old) {
  const size_t i = index_of(slot);
  edited_[i].reset();
  parts_[i] = old.parts()[i];
}

json Draft::whole() const { return join({&metadata(), &spec(), &status(), &part(Slot::kRest)}); }

bool Draft::same_as(const Object& old) const {
  for (const Slot slot : kSlots) {
    const size_t i = index_of(slot);
    if (!edited_[i] && parts_[i] == old.parts()[i]) continue;
    if (part(slot) != old.part(slot)) return false;
  }
  return true;
}

Parts Draft::finish(const Object* old) {
  for (const Slot slot : kSlots) {
    const size_t i = index_of(slot);
    if (!edited_[i]) continue;
    const bool same = old != nullptr && edited_[i]->value == old->part(slot);
    if (same) {
      parts_[i] = old->parts()[i];
    } else if (edited_[i]->value.is_null()) {
      parts_[i] = nullptr;
    } else {
      parts_[i] = std::move(edited_[i]);
    }
    edited_[i].reset();
  }
  return std::move(parts_);
}

}  // namespace spillway::test::api_model
