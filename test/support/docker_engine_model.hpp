// A Docker Engine in memory behind net::HttpClient: containers, images and pulls, in virtual time, with faults on
// order.
//
// Owned by a test; outlives the clients that it hands out. It knows what providers/docker asks for and answers as
// Docker 20.10 was seen to; it is no measure of what Docker does: test/integration asks the real one.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::test {

class DockerEngineModel {
 public:
  struct Container {
    Container() = default;
    std::string id;
    std::string name;
    nlohmann::json body;  // as it was created
    std::string state = "created";
    int exit_code = 0;
    bool oom_killed = false;
    std::string error;
    base::WallTime created;
    std::optional<base::WallTime> started;
    std::optional<base::WallTime> finished;
    bool ignores_sigterm = false;
    nlohmann::json mounts = nlohmann::json::array();  // as inspected

    std::string label(const std::string& key) const;
  };

  /// What a pull does: lines, each after a delay. Without an end it goes on waiting for ever.
  struct Pull {
    Pull() = default;
    int status = 200;
    std::vector<std::pair<base::Duration, std::string>> lines;
    bool ends = true;
    bool breaks = false;  // the connection is lost after the lines
  };

  using Response = base::Result<net::HttpResponse>;

  explicit DockerEngineModel(async::Timers& timers) : timers_(timers) {}

  std::unique_ptr<net::HttpClient> client();

  /// By name; fails the test if there is none.
  Container& container(const std::string& name);
  bool has(const std::string& name) const;
  size_t size() const { return containers_.size(); }
  std::vector<const Container*> all() const;
  /// Made behind the provider's back.
  void add(const std::string& name, const nlohmann::json& body);
  void start_by_hand(const std::string& name);
  void exit(const std::string& name, int code);
  void remove(const std::string& name);
  /// Requests seen whose line "METHOD /target" contains the text.
  size_t count(const std::string& text) const;

  struct Volume {
    Volume() = default;
    std::string owner;  // the container that it was made for, by id
    nlohmann::json labels;
    nlohmann::json options;  // of its driver
  };
  /// What was uploaded, by "<container's name>:<path>".
  struct File {
    File() = default;
    char type = '0';
    int mode = 0;
    std::int64_t uid = 0;
    std::int64_t gid = 0;
    std::string content;
  };

  std::map<std::string, Volume> volumes;  // by name
  std::map<std::string, File> files;
  /// A line with its end, or a part of one, as an engine keeps it.
  struct LogRecord {
    LogRecord() = default;
    base::WallTime at;
    bool errors = false;
    std::string bytes;
  };
  static std::string frame(int type, const std::string& bytes);
  /// As it is sent, with its time if `times`; the engine's has nine digits, the last three are 789.
  static std::string send(const LogRecord& record, bool tty, bool times);

  std::map<std::string, std::string> logs;                // by name of container, with frames: whatever is asked of it
  std::map<std::string, std::vector<LogRecord>> records;  // by name of container: for those that are not in `logs`
  std::map<std::string, std::string> image_users;         // by image
  std::set<std::string> images;
  std::map<std::string, Pull> pulls;    // by repository:tag; an image without one is missing
  std::set<std::string> bad_commands;   // first words of a command that cannot be started
  base::Duration latency{};             // until a request is carried out
  base::Duration listing_delay{};       // from a listing to its arrival: it is old by then
  std::deque<int> exit_codes_at_start;  // the next containers end as they start
  std::string architecture = "amd64";
  int oldest_api = 12;  // minor versions that it speaks
  int newest_api = 41;
  nlohmann::json disk_usage;  // what GET /system/df answers; null: it fails
  bool reachable = true;
  int running_pulls = 0;
  std::vector<std::string> requests;

  /// Looked at before a request is carried out: an answer here replaces it.
  std::function<std::optional<Response>(const net::HttpRequest&)> before;
  /// Looked at after it was carried out: an answer here replaces the true one (a lost answer).
  std::function<std::optional<Response>(const net::HttpRequest&, const Response&)> after;

  /// Looked at before a request that asks for a stream: an answer here replaces what the engine would do.
  std::function<std::optional<base::Result<net::HttpStream>>(const net::HttpRequest&)> streams;

  static Response answer(int status, const nlohmann::json& body);
  static Response refuse(int status, const std::string& message);
  /// Of a request's target, decoded; empty if it is not there.
  static std::string query_value(const std::string& target, const std::string& key);

 private:
  friend class DockerModelClient;
  friend class DockerModelPull;

  Response handle(const net::HttpRequest& request);
  Response handle_container(const net::HttpRequest& request);
  Response list(const std::string& query);
  // docker_engine_model_volumes.cpp
  void make_volumes(Container& container);
  void remove_volumes(const std::string& container_id);
  Response upload(const Container& container, std::string_view tar);
  Response download(const Container& container, const std::string& path);
  bool has_path(const Container& container, const std::string& path) const;
  /// True if every part of a volume that it mounts is there.
  bool has_parts(const Container& container, std::string& error);
  Response handle_volumes(net::Method method, const std::string& target);
  // docker_engine_model_logs.cpp
  Response log(const Container& container, const std::string& target);
  Response use(const Container& container) const;

  Response create(const std::string& name, const nlohmann::json& body);
  Response start(Container& container);
  std::string status_words(const Container& container) const;
  Container* find(const std::string& id_or_name);
  void end(Container& container, int code);
  bool can_run(const Container& container, std::string& error, int& code);

  async::Timers& timers_;
  std::map<std::string, Container> containers_;  // by id
  int next_id_ = 1;
  int next_volume_ = 1;
};

}  // namespace spillway::test
