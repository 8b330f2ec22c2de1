// What EngineClient asks about volumes and the files in them; the rest of client.hpp is in client.cpp.
#include "providers/docker/client.hpp"

#include "vk-provider/net/url.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;

// Of a file that is read: what is larger was not meant for us.
constexpr size_t kLargestFile = 1024UL * 1024;

}  // namespace

async::Task<Answer> EngineClient::upload(std::string container, std::string tar, base::Deadline deadline) {
  net::HttpRequest request;
  request.method = net::Method::kPut;
  request.target = path_of(container, "/archive?path=%2F");
  request.body = std::move(tar);
  request.content_type = "application/x-tar";
  co_return co_await answer_to(std::move(request), deadline);
}

async::Task<std::string> EngineClient::read_bytes(std::string target, std::string what, base::Deadline deadline) {
  net::HttpRequest request;
  request.target = std::move(target);
  request.max_response = kLargestFile;
  auto response = co_await http_->send(std::move(request), deadline);
  if (!response) co_return base::fail(named(response.error()));
  if (response->status != 200) co_return base::fail(refusal(*response, what));
  co_return std::move(response->body);
}

async::Task<bool> EngineClient::has_path(std::string container, std::string path, base::Deadline deadline) {
  std::string target = path_of(container, "/archive?path=" + net::encode_query_value(path));
  const auto response = co_await send(net::Method::kHead, std::move(target), "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status == 404) co_return false;
  if (response->status != 200) co_return base::fail(refusal(*response, "path " + path));
  co_return true;
}

async::Task<std::string> EngineClient::download(std::string container, std::string path, base::Deadline deadline) {
  std::string target = path_of(container, "/archive?path=" + net::encode_query_value(path));
  co_return co_await read_bytes(std::move(target), "file " + path, deadline);
}

async::Task<std::vector<VolumeEntry>> EngineClient::list_volumes(std::string label, base::Deadline deadline) {
  const auto response = co_await send(net::Method::kGet, "/volumes?" + encode_label_filter(label), "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status != 200) co_return base::fail(refusal(*response, "list of volumes"));
  auto volumes = decode_volumes(response->body);
  if (!volumes) co_return base::fail(named(std::move(volumes.error())));
  co_return std::move(*volumes);
}

async::Task<Answer> EngineClient::remove_volume(std::string name, base::Deadline deadline) {
  co_return co_await write(net::Method::kDelete, "/volumes/" + net::encode_path_segment(name), "", deadline);
}

async::Task<DiskUsage> EngineClient::disk_usage(base::Deadline deadline) {
  // Engines before API 1.42 know no types, and measure images as well.
  const auto response = co_await send(net::Method::kGet, "/system/df?type=container&type=volume", "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status != 200) co_return base::fail(refusal(*response, "disk usage"));
  auto usage = decode_disk_usage(response->body);
  if (!usage) co_return base::fail(named(std::move(usage.error())));
  co_return std::move(*usage);
}

async::Task<std::string> EngineClient::image_user(std::string image, base::Deadline deadline) {
  const auto response =
      co_await send(net::Method::kGet, "/images/" + net::encode_path_segment(image) + "/json", "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status != 200) co_return base::fail(refusal(*response, "image " + image));
  co_return decode_image_user(response->body);
}

}  // namespace spillway::providers::docker
