#include "vk-provider/kube/kubeconfig.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "vk-provider/net/digest.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace {

/// One mapping of the document, with the way to it for messages.
struct Section {
  YAML::Node node;
  std::string path;
};

class Reader {
 public:
  explicit Reader(std::string directory) : directory_(std::move(directory)) {}

  void fault(const std::string& path, const std::string& what) { faults_.push_back(path + ": " + what); }
  const std::vector<std::string>& faults() const { return faults_; }

  /// A text or number; nothing if it is absent, null or empty. A mapping or list there is a fault.
  std::string text(const Section& section, const char* key) {
    const YAML::Node value = child(section, key);
    if (!value || value.IsNull()) return {};
    if (!value.IsScalar()) {
      fault(section.path + "." + key, "must be a text");
      return {};
    }
    return value.Scalar();
  }

  bool is_set(const Section& section, const char* key) {
    const YAML::Node value = child(section, key);
    return value && !value.IsNull() && !(value.IsScalar() && value.Scalar().empty());
  }

  /// `<key>-data` (base64, wins as in kubectl) or the file named by `<key>`.
  std::string data_or_file(const Section& section, const std::string& key) {
    std::string encoded = text(section, (key + "-data").c_str());
    if (!encoded.empty()) {
      std::erase_if(encoded, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
      const std::optional<std::string> decoded = net::base64_decode(encoded);
      if (decoded && !decoded->empty()) return *decoded;
      fault(section.path + "." + key + "-data", "is not base64");
      return {};
    }
    const std::string file = text(section, key.c_str());
    if (file.empty()) return {};
    base::Result<std::string> content = read_small_file(absolute(file));
    if (!content) fault(section.path + "." + key, content.error().message);
    return content.value_or(std::string());
  }

  std::string absolute(const std::string& file) const { return (std::filesystem::path(directory_) / file).string(); }

  /// The mapping `what` of the entry called `name` in the list `list`.
  std::optional<Section> find(const YAML::Node& root, const char* list, const char* what, const std::string& name,
                              const std::string& named_by) {
    const YAML::Node entries = root[list];
    if (entries && entries.IsSequence()) {
      for (size_t i = 0; i < entries.size(); ++i) {
        const YAML::Node entry = entries[i];
        if (!entry.IsMap() || !entry["name"] || !entry["name"].IsScalar() || entry["name"].Scalar() != name) continue;
        Section found{entry[what], std::string(list) + "[" + std::to_string(i) + "]." + what};
        if (found.node && found.node.IsMap()) return found;
        fault(found.path, "must be a mapping");
        return std::nullopt;
      }
    }
    fault(list, "has no entry called \"" + name + "\", which " + named_by + " names");
    return std::nullopt;
  }

 private:
  static YAML::Node child(const Section& section, const char* key) {
    // Of a const node, so that reading does not add the key.
    const YAML::Node& node = section.node;
    return node[key];
  }

  std::string directory_;
  std::vector<std::string> faults_;
};

void read_cluster(Reader& reader, const Section& cluster, ClusterAccess& access) {
  const std::string server = reader.text(cluster, "server");
  if (server.empty()) {
    reader.fault(cluster.path + ".server", "is missing; give the URL of the API server");
  } else if (base::Result<net::Url> url = net::parse_url(server)) {
    access.endpoint = url->endpoint;
    access.path_prefix = url->path;
    if (url->path.find('?') != std::string::npos) reader.fault(cluster.path + ".server", "must not have a query (?)");
  } else {
    reader.fault(cluster.path + ".server", url.error().message);
  }
  std::string insecure = reader.text(cluster, "insecure-skip-tls-verify");
  std::ranges::transform(insecure, insecure.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!insecure.empty() && insecure != "false") {
    reader.fault(cluster.path + ".insecure-skip-tls-verify",
                 "is refused: the API server is always verified; remove it and set certificate-authority-data");
  }
  if (reader.is_set(cluster, "proxy-url")) {
    reader.fault(cluster.path + ".proxy-url", "is not supported; remove it and make the server reachable directly");
  }
  access.endpoint.server_name = reader.text(cluster, "tls-server-name");
  access.endpoint.ca_pem = reader.data_or_file(cluster, "certificate-authority");
}

void refuse_foreign_logins(Reader& reader, const Section& user) {
  static constexpr const char* kToken =
      "; use token, tokenFile or client-certificate-data (for example of a ServiceAccount)";
  static constexpr std::array<std::pair<const char*, const char*>, 9> kRefused = {{
      {"exec", "exec plugins are not supported: a daemon does not run other programs to log in"},
      {"auth-provider", "auth providers are not supported"},
      {"username", "passwords are not supported"},
      {"password", "passwords are not supported"},
      {"as", "impersonation is not supported"},
      {"as-uid", "impersonation is not supported"},
      {"as-groups", "impersonation is not supported"},
      {"as-user-extra", "impersonation is not supported"},
      {"token-file", "is unknown; the key is called tokenFile"},
  }};
  for (const auto& [key, why] : kRefused) {
    if (reader.is_set(user, key)) reader.fault(user.path + "." + key, std::string(why) + kToken);
  }
}

void read_user(Reader& reader, const Section& user, ClusterAccess& access) {
  const size_t faults_before = reader.faults().size();
  refuse_foreign_logins(reader, user);
  access.endpoint.client_cert_pem = reader.data_or_file(user, "client-certificate");
  access.endpoint.client_key_pem = base::Secret(reader.data_or_file(user, "client-key"));
  access.token = base::Secret(reader.text(user, "token"));
  const std::string token_file = reader.text(user, "tokenFile");
  if (!token_file.empty()) {
    access.token_file = reader.absolute(token_file);
    base::Result<base::Secret> token = read_token_file(access.token_file);
    if (token) access.token = std::move(*token);
    if (!token) reader.fault(user.path + ".tokenFile", token.error().message);
  }
  if (reader.faults().size() > faults_before) return;

  const bool has_cert = !access.endpoint.client_cert_pem.empty();
  if (has_cert != !access.endpoint.client_key_pem.empty()) {
    reader.fault(user.path + (has_cert ? ".client-key-data" : ".client-certificate-data"),
                 "is missing; certificate and key come together");
  } else if (!has_cert && access.token.empty()) {
    reader.fault(user.path,
                 "has no credentials; give token, tokenFile, or client-certificate-data with client-key-data");
  }
}

/// A token or key is only sent where nobody listens in.
void check_transport(Reader& reader, const Section& cluster, const ClusterAccess& access) {
  if (access.endpoint.scheme != net::Endpoint::Scheme::kHttp) return;
  const std::string& host = access.endpoint.host;
  if (host == "localhost" || host.starts_with("127.") || host == "::1") return;
  reader.fault(cluster.path + ".server", "http:// would send the credentials in clear; use https://");
}

std::optional<ClusterAccess> read_document(Reader& reader, const YAML::Node& root) {
  ClusterAccess access;
  if (!root.IsMap()) {
    reader.fault("kubeconfig", "must be a mapping with clusters, users, contexts and current-context");
    return std::nullopt;
  }
  const Section top{root, "kubeconfig"};
  const std::string current = reader.text(top, "current-context");
  if (current.empty()) {
    reader.fault("current-context", "is missing; set it with `kubectl config use-context`");
    return std::nullopt;
  }
  const std::optional<Section> context = reader.find(root, "contexts", "context", current, "current-context");
  if (!context) return std::nullopt;
  access.ns = reader.text(*context, "namespace");
  if (access.ns.empty()) access.ns = "default";

  const auto named = [&](const char* key, const char* list) -> std::optional<Section> {
    const std::string name = reader.text(*context, key);
    if (!name.empty()) return reader.find(root, list, key, name, context->path + "." + key);
    reader.fault(context->path + "." + key, "is missing");
    return std::nullopt;
  };
  const std::optional<Section> cluster = named("cluster", "clusters");
  const std::optional<Section> user = named("user", "users");
  if (cluster) read_cluster(reader, *cluster, access);
  if (user) read_user(reader, *user, access);
  if (cluster) check_transport(reader, *cluster, access);
  return access;
}

}  // namespace

base::Result<ClusterAccess> parse_kubeconfig(std::string_view text, const std::string& directory,
                                             const std::string& name) {
  Reader reader(directory);
  std::optional<ClusterAccess> access;
  try {
    access = read_document(reader, YAML::Load(std::string(text)));
  } catch (const YAML::Exception& e) {
    // Only the place: the text around it may be a key.
    reader.fault("line " + std::to_string(e.mark.line + 1), "is not valid YAML");
  }
  if (access && reader.faults().empty()) return std::move(*access);
  std::string message = name + " cannot be used:";
  for (const std::string& fault : reader.faults()) message += "\n  " + fault;
  return base::fail(base::ErrorKind::kInvalid, std::move(message));
}

base::Result<ClusterAccess> load_kubeconfig(const std::string& path) {
  const base::Result<std::string> text = read_small_file(path);
  if (!text) return base::fail(text.error());
  return parse_kubeconfig(*text, std::filesystem::absolute(path).parent_path().string(), path);
}

}  // namespace spillway::kube
