#include "test/support/api_script/runner.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "vk-provider/net/line_splitter.hpp"

namespace spillway::test::api_script {
namespace {

using nlohmann::json;

constexpr size_t kMaxLine = 1024 * 1024;
constexpr base::Duration kPatience = std::chrono::seconds(10);
constexpr int kExpireTries = 60;

struct Watch {
  async::ByteStreamPtr stream;
  net::LineSplitter lines{kMaxLine};
  bool ended = false;
};

json readable(const std::string& body) {
  json value = json::parse(body, nullptr, false);
  return value.is_discarded() ? json(body) : value;
}

/// ADDED web, BOOKMARK, ERROR
std::string label_of(const json& event) {
  std::string out = event.value("type", "");
  const std::string name = event.value(json::json_pointer("/object/metadata/name"), "");
  return name.empty() ? out : out + " " + name;
}

class Run {
 public:
  explicit Run(Server& server) : server_(server) {}

  async::Task<void> perform(Step step, Said& said) {
    step.request.target = fill_in(step.request.target, saved_);
    step.request.body = fill_in(step.request.body, saved_);
    switch (step.kind) {
      case Step::Kind::kRequest: co_return co_await request(std::move(step), said);
      case Step::Kind::kWatch: co_return co_await open(std::move(step), said);
      case Step::Kind::kRead: co_return co_await read(step.watch, step.until, said);
      case Step::Kind::kClose: watches_.erase(step.watch); break;
      case Step::Kind::kExpire: co_return co_await expire(std::move(step), said);
    }
    co_return base::Result<void>();
  }

 private:
  async::Task<void> request(Step step, Said& said) {
    auto answer = co_await server_.exchange(std::move(step.request));
    if (!answer) co_return base::fail(std::move(answer.error()));
    note(*answer, step, said);
    co_return base::Result<void>();
  }

  async::Task<void> open(Step step, Said& said) {
    auto opened = co_await server_.open(step.request);
    if (!opened) co_return base::fail(std::move(opened.error()));
    if (!*opened) {
      note(opened->error(), step, said);
      co_return base::Result<void>();
    }
    said.code = 200;
    auto watch = std::make_unique<Watch>();
    watch->stream = std::move(**opened);
    watches_[step.watch] = std::move(watch);
    co_return base::Result<void>();
  }

  async::Task<void> read(std::string name, std::string until, Said& said) {
    const auto found = watches_.find(name);
    if (found == watches_.end()) {
      said.texts.emplace_back("no such watch is open");
      co_return base::Result<void>();
    }
    Watch& watch = *found->second;
    const base::Deadline deadline = server_.timers().now() + kPatience;
    for (;;) {
      while (const auto line = watch.lines.next()) {
        said.texts.push_back(readable(std::string(*line)));
        if (said.texts.back().is_object() && label_of(said.texts.back()) == until) co_return base::Result<void>();
      }
      if (watch.ended) {
        said.texts.emplace_back("end");
        co_return base::Result<void>();
      }
      auto bytes = co_await watch.stream->read(deadline);
      if (!bytes) {
        said.texts.emplace_back(fmt::format("nothing came ({})", base::to_string(bytes.error().kind)));
        co_return base::Result<void>();
      }
      watch.ended = bytes->empty();
      (void)watch.lines.feed(*bytes);
    }
  }

  async::Task<void> expire(Step step, Said& said) {
    for (int i = 0; i < kExpireTries; ++i) {
      if (auto done = co_await server_.forget(); !done) co_return done;
      auto answer = co_await server_.exchange(step.request);
      if (!answer) co_return base::fail(std::move(answer.error()));
      if (answer->code == 200) continue;
      note(*answer, step, said);
      co_return base::Result<void>();
    }
    said.texts.emplace_back("never forgotten");
    co_return base::Result<void>();
  }

  void note(const Answer& answer, const Step& step, Said& said) {
    said.code = answer.code;
    said.texts.push_back(readable(answer.body));
    for (const auto& [name, pointer] : step.saves) {
      const json& body = said.texts.back();
      const json::json_pointer path(pointer);
      if (body.is_object() && body.contains(path) && body[path].is_string()) saved_[name] = body[path];
    }
  }

  Server& server_;
  std::map<std::string, std::string> saved_;
  std::map<std::string, std::unique_ptr<Watch>> watches_;
};

}  // namespace

async::Task<std::vector<Said>> run(std::vector<Step> steps, Server& server) {
  Run run(server);
  std::vector<Said> out;
  for (Step& step : steps) {
    Said said;
    said.title = step.title;
    said.line = step.line;
    auto done = co_await run.perform(std::move(step), said);
    if (!done) {
      done.error().message = said.line + ": " + done.error().message;
      co_return base::fail(std::move(done.error()));
    }
    out.push_back(std::move(said));
  }
  co_return out;
}

}  // namespace spillway::test::api_script
