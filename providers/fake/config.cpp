#include "providers/fake/config.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <boost/asio/ip/address.hpp>
#include <nlohmann/json.hpp>

#include "providers/fake/orders.hpp"
#include "vk-provider/model/gpu_catalog.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::providers::fake {
namespace {

using nlohmann::json;
using provider::ConfigFault;

constexpr std::array<std::string_view, 4> kCloudKeys = {"seed", "bootTime", "priceWalk", "offers"};

/// One mapping that is being read: knows its path, collects faults, and finds keys that nobody asked for.
class Mapping {
 public:
  Mapping(const json& value, std::string path, std::vector<ConfigFault>& faults)
      : value_(value), path_(std::move(path)), faults_(faults) {
    if (!value.is_object() && !value.is_null()) fault("", "found " + shown(value) + ", expected a mapping");
  }

  const json* get(std::string_view key) {
    known_.push_back(key);
    if (!value_.is_object()) return nullptr;
    const auto it = value_.find(key);
    return it == value_.end() || it->is_null() ? nullptr : &*it;
  }
  bool has(std::string_view key) const { return value_.is_object() && value_.contains(key); }

  template <class Text>
  void text(std::string_view key, Text& out) {
    const json* v = get(key);
    if (v == nullptr) return;
    if (!v->is_string()) return fault(key, "found " + shown(*v) + ", expected a text");
    out = v->get<std::string>();
  }
  template <class Int>
  void whole(std::string_view key, Int& out, std::int64_t least, std::int64_t most) {
    const json* v = get(key);
    if (v == nullptr) return;
    if (!v->is_number_integer() || v->get<std::int64_t>() < least || v->get<std::int64_t>() > most) {
      return fault(key, "found " + shown(*v) + ", expected a whole number from " + std::to_string(least) + " to " +
                            std::to_string(most));
    }
    out = static_cast<Int>(v->get<std::int64_t>());
  }
  void duration(std::string_view key, base::Duration& out) {
    const json* v = get(key);
    if (v == nullptr) return;
    const auto d = parse_duration(scalar(*v));
    if (!d) return fault(key, "found " + shown(*v) + ", expected a duration such as 500ms, 2s or 5m");
    out = *d;
  }
  void seconds(std::string_view key, std::chrono::seconds& out, std::chrono::seconds least) {
    base::Duration d = out;
    duration(key, d);
    if (d % std::chrono::seconds(1) != base::Duration{0} || d < least) {
      return fault(key, "found " + format_duration(d) + ", expected whole seconds, at least " + format_duration(least));
    }
    out = std::chrono::duration_cast<std::chrono::seconds>(d);
  }
  void quantity(std::string_view key, std::int64_t& out, bool milli) {
    const json* v = get(key);
    if (v == nullptr) return;
    const std::string s = scalar(*v);
    const auto q = milli ? model::quantity_milli(s) : model::quantity_value(s);
    if (!q || *q < 0) return fault(key, "found " + shown(*v) + ", expected a quantity such as 16, 500m or 64Gi");
    out = *q;
  }
  template <class Enum, size_t N>
  void word(std::string_view key, Enum& out, const std::array<std::pair<std::string_view, Enum>, N>& words) {
    const json* v = get(key);
    if (v == nullptr) return;
    std::string allowed;
    for (const auto& [name, e] : words) {
      if (v->is_string() && v->get_ref<const std::string&>() == name) {
        out = e;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(name);
    }
    fault(key, "found " + shown(*v) + ", expected one of: " + allowed);
  }

  void fault(std::string_view key, std::string message) {
    std::string path = path_;
    if (!key.empty()) path += (path.empty() ? "" : ".") + std::string(key);
    faults_.emplace_back(std::move(path), std::move(message));
  }
  /// Call when everything was asked for.
  void refuse_other_keys() {
    if (!value_.is_object()) return;
    for (const auto& [key, v] : value_.items()) {
      if (std::ranges::find(known_, key) == known_.end())
        fault(key, "unknown key; did you mean " + nearest(key, known_) + "?");
    }
  }

  static std::string shown(const json& v) {
    constexpr size_t kMost = 60;
    std::string s = v.dump(-1, ' ', false, json::error_handler_t::replace);
    if (s.size() > kMost) s = s.substr(0, kMost) + "...";
    return s;
  }
  /// A number as it would be written, a text as it is.
  static std::string scalar(const json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); }

 private:
  const json& value_;
  std::string path_;
  std::vector<ConfigFault>& faults_;
  std::vector<std::string_view> known_;
};

constexpr std::array kCapacityTypes = {std::pair{std::string_view("on-demand"), model::CapacityType::kOnDemand},
                                       std::pair{std::string_view("spot"), model::CapacityType::kSpot},
                                       std::pair{std::string_view("reserved"), model::CapacityType::kReserved}};
constexpr std::array kTrusts = {std::pair{std::string_view("datacenter"), model::Trust::kDatacenter},
                                std::pair{std::string_view("community"), model::Trust::kCommunity}};
constexpr std::array kModes = {std::pair{std::string_view("inProcess"), Mode::kInProcess},
                               std::pair{std::string_view("socket"), Mode::kSocket}};

void read_gpu(Mapping& m, model::Offer& offer) {
  std::string model;
  m.text("gpuModel", model);
  m.quantity("gpuMemory", offer.gpu_memory, false);
  m.whole("gpuCount", offer.gpu_count, 0, 1024);
  if (model.empty()) {
    if (offer.gpu_count > 0) m.fault("gpuModel", "missing, but gpuCount is " + std::to_string(offer.gpu_count));
    return;
  }
  if (offer.gpu_count == 0) m.fault("gpuCount", "missing or 0, but gpuModel is " + model);
  const model::GpuModel* gpu = model::find_gpu(model, offer.gpu_memory);
  if (gpu == nullptr) {
    std::vector<std::string_view> names;
    for (const model::GpuModel& g : model::gpu_models()) names.push_back(g.name);
    return m.fault("gpuModel",
                   "found \"" + model + "\", which is no known GPU; did you mean " + nearest(model, names) + "?");
  }
  offer.gpu_model = gpu->name;
  if (offer.gpu_memory == 0) offer.gpu_memory = gpu->memory;
}

CloudOffer read_offer(const json& value, const std::string& path, std::vector<ConfigFault>& faults) {
  Mapping m(value, path, faults);
  CloudOffer sold;
  std::string id;
  m.text("id", id);
  if (id.empty()) m.fault("id", "missing; every offer needs an id of its own");
  sold.offer.id = base::OfferId(id);
  m.text("region", sold.offer.region);
  read_gpu(m, sold.offer);
  m.quantity("cpu", sold.offer.cpu_milli, true);
  m.quantity("memory", sold.offer.memory, false);
  if (const json* v = m.get("pricePerHour")) {
    sold.offer.price_per_hour = base::Money::from_dollars(Mapping::scalar(*v));
    if (!sold.offer.price_per_hour) {
      m.fault("pricePerHour", "found " + Mapping::shown(*v) + ", expected dollars per hour such as 2.39");
    }
  }
  m.word("capacityType", sold.offer.capacity_type, kCapacityTypes);
  m.word("trust", sold.offer.trust, kTrusts);
  int stock = -1;
  m.whole("stock", stock, 0, 1'000'000);
  if (stock >= 0) sold.stock = stock;
  if (const json* v = m.get("billing")) {
    Mapping billing(*v, path + ".billing", faults);
    billing.seconds("grain", sold.grain, std::chrono::seconds(1));
    billing.seconds("minimum", sold.minimum, std::chrono::seconds(0));
    billing.refuse_other_keys();
  }
  m.refuse_other_keys();
  return sold;
}

void read_offers(Mapping& m, CloudSettings& cloud, std::vector<ConfigFault>& faults) {
  const json* v = m.get("offers");
  if (v == nullptr) return;
  if (!v->is_array() || v->empty())
    return m.fault("offers", "found " + Mapping::shown(*v) + ", expected a list of offers");
  cloud.offers.clear();
  std::set<std::string> ids;
  for (size_t i = 0; i < v->size(); ++i) {
    const std::string path = "offers[" + std::to_string(i) + "]";
    cloud.offers.push_back(read_offer(v->at(i), path, faults));
    const std::string& id = cloud.offers.back().offer.id.str();
    if (!id.empty() && !ids.insert(id).second) faults.emplace_back(path + ".id", "\"" + id + "\" is used twice");
  }
}

void read_cloud(Mapping& m, CloudSettings& cloud, std::vector<ConfigFault>& faults) {
  m.whole("seed", cloud.seed, 0, std::numeric_limits<std::int64_t>::max());
  m.duration("bootTime", cloud.boot_time);
  if (const json* v = m.get("priceWalk")) {
    Mapping walk(*v, "priceWalk", faults);
    walk.duration("step", cloud.price_step);
    walk.whole("permille", cloud.price_permille, 0, 500);
    if (cloud.price_step <= base::Duration{0}) walk.fault("step", "missing or 0; how often do prices move?");
    walk.refuse_other_keys();
  }
  read_offers(m, cloud, faults);
}

}  // namespace

ConfigReading read_config(const json& config) {
  ConfigReading r;
  Mapping m(config, "", r.faults);
  m.word("mode", r.config.mode, kModes);
  m.text("socket", r.config.socket);
  m.text("podIP", r.config.pod_ip);
  boost::system::error_code bad;
  boost::asio::ip::make_address(r.config.pod_ip, bad);
  if (bad && m.has("podIP")) m.fault("podIP", "found \"" + r.config.pod_ip + "\", expected an IP address");
  m.duration("settleTime", r.config.settle_time);
  if (r.config.mode == Mode::kSocket) {
    if (r.config.socket.empty())
      m.fault("socket", "missing; mode socket needs the path that `spillway fake-cloud --socket` has");
    for (const std::string_view key : kCloudKeys) {
      if (m.has(key)) m.fault(key, "has no effect with mode socket; give it to `spillway fake-cloud --config`");
      m.get(key);
    }
  } else {
    if (!r.config.socket.empty()) m.fault("socket", "has no effect without mode: socket");
    read_cloud(m, r.config.cloud, r.faults);
  }
  m.refuse_other_keys();
  return r;
}

std::vector<ConfigFault> validate_config(const json& config) { return read_config(config).faults; }

base::Result<CloudSettings> read_cloud_settings(std::string_view json_text) {
  const json parsed = json::parse(json_text, nullptr, false);
  if (parsed.is_discarded()) return base::fail(base::ErrorKind::kInvalid, "the file is not JSON");
  std::vector<ConfigFault> faults;
  CloudSettings cloud;
  Mapping m(parsed, "", faults);
  read_cloud(m, cloud, faults);
  m.refuse_other_keys();
  if (faults.empty()) return cloud;
  std::string all;
  for (const ConfigFault& f : faults)
    all += (all.empty() ? "" : "\n") + (f.path.empty() ? "" : f.path + ": ") + f.message;
  return base::fail(base::ErrorKind::kInvalid, all);
}

}  // namespace spillway::providers::fake
