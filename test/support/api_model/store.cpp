#include "test/support/api_model/store.hpp"

#include <algorithm>
#include <utility>

namespace spillway::test::api_model {

Store::Collection& Store::collection(const Resource& resource) { return collections_[resource.plural]; }

const Store::Collection& Store::collection(const Resource& resource) const {
  static const Collection nothing;
  const auto it = collections_.find(resource.plural);
  return it == collections_.end() ? nothing : it->second;
}

ObjectPtr Store::find(const Resource& resource, const std::string& key) const {
  const auto& objects = collection(resource).objects;
  const auto it = objects.find(key);
  return it == objects.end() ? nullptr : it->second;
}

ObjectPtr Store::put(const Resource& resource, const std::string& key, Draft draft) {
  ObjectPtr& place = collection(resource).objects[key];
  auto object = std::make_shared<const Object>(resource, draft.finish(place.get()), ++version_);
  note({&resource, version_, std::exchange(place, object), object, object});
  return object;
}

ObjectPtr Store::erase(const Resource& resource, const std::string& key) {
  auto& objects = collection(resource).objects;
  const auto it = objects.find(key);
  const ObjectPtr before = it->second;
  objects.erase(it);
  auto shown = std::make_shared<const Object>(resource, before->parts(), ++version_);
  note({&resource, version_, before, nullptr, shown});
  return shown;
}

void Store::note(Change change) {
  Collection& changed = collection(*change.resource);
  changed.history.push_back(std::move(change));
  if (changed.history.size() > kHistory) {
    changed.oldest = changed.history.front().version;
    changed.history.pop_front();
  }
  // An observer may change something itself.
  const Change noted = changed.history.back();
  for (size_t i = 0; i < observers_.size(); ++i) observers_[i](noted);
}

const std::map<std::string, ObjectPtr>& Store::all(const Resource& resource) const {
  return collection(resource).objects;
}

std::map<std::string, ObjectPtr> Store::all_at(const Resource& resource, std::uint64_t version) const {
  const Collection& from = collection(resource);
  std::map<std::string, ObjectPtr> out = from.objects;
  for (auto change = from.history.rbegin(); change != from.history.rend() && change->version > version; ++change) {
    const std::string key = change->shown->key();
    if (change->before) {
      out[key] = change->before;
    } else {
      out.erase(key);
    }
  }
  return out;
}

std::uint64_t Store::oldest_version(const Resource& resource) const { return collection(resource).oldest; }

void Store::replay(const Resource& resource, std::uint64_t since,
                   const std::function<void(const Change&)>& take) const {
  const auto& history = collection(resource).history;
  auto change = std::ranges::upper_bound(history, since, {}, &Change::version);
  for (; change != history.end(); ++change) take(*change);
}

void Store::compact() {
  // Also of resources of which nothing is known yet: their changes before this moment are gone as well.
  for (const Resource& resource : resources()) {
    Collection& one = collection(resource);
    one.history.clear();
    one.oldest = version_;
  }
}

}  // namespace spillway::test::api_model
