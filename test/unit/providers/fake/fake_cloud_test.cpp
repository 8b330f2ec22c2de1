#include "providers/fake/fake_cloud.hpp"

#include <array>

#include <catch2/catch.hpp>

#include "test/unit/providers/fake/cloud_builder.hpp"

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;
using model::ContainerState;
using model::InstanceState;

namespace {

std::vector<std::string> tags_of(const Reply<provider::OwnedList>& reply) {
  std::vector<std::string> tags;
  for (const auto& i : reply.result.value().instances) tags.push_back(i.tag.str());
  return tags;
}

}  // namespace

TEST_CASE("fake cloud: without a boot time an instance runs as soon as it is bought") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto instance = cloud.create(a_purchase("spw-a-1"), at(2s)).result.value();
  CHECK(instance.tag.str() == "spw-a-1");
  CHECK(instance.state == InstanceState::kRunning);
  CHECK(instance.price_per_hour == base::Money::from_dollars("0.36"));
  CHECK(instance.created_at == cloud_start().wall + 2s);
  CHECK(instance.billing.from == cloud_start().wall + 2s);
  REQUIRE(instance.containers.size() == 1);
  CHECK(instance.containers[0].state == ContainerState::kRunning);
  CHECK(instance.containers[0].started_at == cloud_start().wall + 2s);
  CHECK_FALSE(instance.containers[0].image_id.empty());
}

TEST_CASE("fake cloud: boot, run and end come at their own times, also when nobody looks") {
  CloudSettings settings = a_cloud();
  settings.boot_time = 10s;
  FakeCloud cloud(settings, cloud_start());
  const auto id =
      cloud.create(a_purchase("spw-a-1", {{"run-for", "30s"}, {"exit-code", "3"}}), at(0s)).result.value().ref.id.str();

  CHECK(cloud.get(id, at(9s)).result.value().state == InstanceState::kPending);
  CHECK(cloud.get(id, at(10s)).result.value().state == InstanceState::kRunning);
  const auto ended = cloud.get(id, at(2h)).result.value();
  CHECK(ended.state == InstanceState::kExited);
  CHECK(ended.containers[0].exit_code == 3);
  CHECK(ended.containers[0].started_at == cloud_start().wall + 10s);
  CHECK(ended.containers[0].finished_at == cloud_start().wall + 40s);
}

TEST_CASE("fake cloud: a container that is only made waits to be started, and each has orders of its own") {
  FakeCloud cloud(a_cloud(), cloud_start());
  CreateRequest request = a_purchase("spw-a-1", {{"exit-code.init", "0"}, {"run-for.init", "5s"}, {"exit-code", "3"}});
  request.containers[0].name = "init";
  CreateRequest::Container main = request.containers[0];
  main.name = "main";
  main.start = false;
  request.containers.push_back(main);
  const auto bought = cloud.create(request, at(0s)).result.value();
  CHECK(bought.state == InstanceState::kRunning);
  CHECK(bought.containers[0].state == ContainerState::kRunning);
  CHECK(bought.containers[1].state == ContainerState::kWaiting);
  CHECK(bought.containers[1].created);
  const std::string id = bought.ref.id.str();
  const auto between = cloud.get(id, at(5s)).result.value();
  CHECK(between.containers[0].exit_code == 0);
  CHECK(between.state == InstanceState::kExited);
  CHECK(cloud.control(id, "main", provider::ContainerAction::kStart, 0s, at(6s)).result);
  const auto running = cloud.get(id, at(2h)).result.value();
  CHECK(running.state == InstanceState::kRunning);
  CHECK(running.containers[1].state == ContainerState::kRunning);
  CHECK_FALSE(running.containers[1].created);
}

TEST_CASE("fake cloud: where nothing is to start by itself, the instance waits for its first start") {
  FakeCloud cloud(a_cloud(), cloud_start());
  CreateRequest request = a_purchase("spw-a-1");
  request.containers[0].start = false;
  const auto bought = cloud.create(request, at(0s)).result.value();
  CHECK(bought.state == InstanceState::kPending);
  CHECK(bought.containers[0].created);
  CHECK(cloud.control(bought.ref.id.str(), "main", provider::ContainerAction::kStart, 0s, at(1s)).result);
  CHECK(cloud.get(bought.ref.id.str(), at(1s)).result.value().state == InstanceState::kRunning);
}

TEST_CASE("fake cloud: two creates with one tag are one purchase") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto first = cloud.create(a_purchase("spw-a-1"), at(0s)).result.value();
  const auto second = cloud.create(a_purchase("spw-a-1"), at(1s)).result.value();
  CHECK(first.ref.id == second.ref.id);
  CHECK(cloud.size(at(2s)) == 1);
  const Audit audit = cloud.audit(at(2s));
  CHECK(audit.creates.at("spw-a-1") == 2);
  CHECK(audit.instances.size() == 1);
}

TEST_CASE("fake cloud: a terminated instance is gone, and says so") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto id = cloud.create(a_purchase("spw-a-1"), at(0s)).result.value().ref.id.str();
  CHECK(cloud.terminate(id, 30s, at(5s)).result.has_value());
  CHECK(cloud.get(id, at(5s)).result.error().kind == ErrorKind::kNotFound);
  CHECK(cloud.terminate(id, 30s, at(6s)).result.error().kind == ErrorKind::kNotFound);
  const Audit audit = cloud.audit(at(6s));
  CHECK(audit.instances[0].gone == cloud_start().wall + 5s);
  CHECK(audit.instances[0].ended_by == "terminate");
}

TEST_CASE("fake cloud: the stop time is cut short by the grace, and asking again does not prolong it") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto slow = cloud.create(a_purchase("spw-a-1", {{"stop-time", "20s"}}), at(0s)).result.value().ref.id.str();
  CHECK(cloud.terminate(slow, 30s, at(0s)).result.has_value());
  CHECK(cloud.terminate(slow, 30s, at(15s)).result.has_value());
  CHECK(cloud.get(slow, at(19s)).result.value().state == InstanceState::kTerminating);
  CHECK(cloud.get(slow, at(20s)).result.error().kind == ErrorKind::kNotFound);

  const auto cut = cloud.create(a_purchase("spw-a-2", {{"stop-time", "20s"}}), at(30s)).result.value().ref.id.str();
  CHECK(cloud.terminate(cut, 5s, at(30s)).result.has_value());
  CHECK(cloud.get(cut, at(34s)).result.has_value());
  CHECK_FALSE(cloud.get(cut, at(35s)).result.has_value());
}

TEST_CASE("fake cloud: a listing shows the prefix only, in full") {
  FakeCloud cloud(a_cloud(), cloud_start());
  cloud.create(a_purchase("spw-b-1"), at(0s));
  cloud.create(a_purchase("spw-a-1", {{"stop-time", "20s"}}), at(0s));
  cloud.create(a_purchase("spw-a-2", {{"run-for", "1s"}}), at(0s));
  cloud.add_foreign("somebody-else", at(0s));
  cloud.add_foreign("", at(0s));
  const auto id = cloud.list_owned("spw-a-1", at(1s)).result.value().instances[0].ref.id.str();
  cloud.terminate(id, 30s, at(2s));

  const auto reply = cloud.list_owned("spw-a-", at(5s));
  CHECK(tags_of(reply) == std::vector<std::string>{"spw-a-1", "spw-a-2"});
  CHECK(reply.result.value().complete);
  CHECK(reply.result.value().instances[0].state == InstanceState::kTerminating);
  CHECK(reply.result.value().instances[1].state == InstanceState::kExited);
  CHECK(cloud.size(at(5s)) == 5);
}

TEST_CASE("fake cloud: a container is restarted by order only, and its runs may end differently") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto id = cloud.create(a_purchase("spw-a-1", {{"run-for", "10s"}, {"exit-code", "1,0"}}), at(0s))
                      .result.value()
                      .ref.id.str();
  const auto first = cloud.get(id, at(60s)).result.value();
  CHECK(first.containers[0].exit_code == 1);

  CHECK(cloud.control(id, "main", provider::ContainerAction::kStart, 0s, at(60s)).result.has_value());
  const auto running = cloud.get(id, at(61s)).result.value();
  CHECK(running.state == InstanceState::kRunning);
  CHECK_FALSE(running.containers[0].exit_code.has_value());
  CHECK(running.containers[0].container_id != first.containers[0].container_id);
  CHECK(running.containers[0].restarts == 0);

  const auto second = cloud.get(id, at(70s)).result.value();
  CHECK(second.containers[0].exit_code == 0);
  CHECK(cloud.control(id, "other", provider::ContainerAction::kStart, 0s, at(71s)).result.error().kind ==
        ErrorKind::kInvalid);
}

TEST_CASE("fake cloud: a container takes its time to stop, and is killed when the grace is over") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto buy = [&](const std::string& tag) {
    return cloud.create(a_purchase(tag, {{"stop-time", "5s"}}), at(0s)).result.value().ref.id.str();
  };
  const auto of = [&](const std::string& id, base::TimePoint when) {
    return cloud.get(id, when).result.value().containers[0];
  };
  const std::string patient = buy("spw-a-1");
  const std::string killed = buy("spw-b-1");
  const std::string again = buy("spw-c-1");
  CHECK(cloud.control(patient, "main", provider::ContainerAction::kStop, 30s, at(10s)).result);
  CHECK(cloud.control(killed, "main", provider::ContainerAction::kStop, 3s, at(10s)).result);
  CHECK(cloud.control(again, "main", provider::ContainerAction::kRestart, 30s, at(10s)).result);
  CHECK(of(patient, at(12s)).state == ContainerState::kRunning);
  CHECK(of(killed, at(13s)).exit_code == 137);
  CHECK(of(patient, at(15s)).exit_code == 143);
  CHECK(of(again, at(15s)).state == ContainerState::kRunning);
  CHECK(of(again, at(15s)).started_at == cloud_start().wall + 15s);
}

TEST_CASE("fake cloud: a stopped container says 143, and the old end of its run is void") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto id = cloud.create(a_purchase("spw-a-1", {{"run-for", "10s"}}), at(0s)).result.value().ref.id.str();
  CHECK(cloud.control(id, "main", provider::ContainerAction::kStop, 0s, at(4s)).result.has_value());
  CHECK(cloud.get(id, at(5s)).result.value().containers[0].exit_code == 143);
  CHECK(cloud.control(id, "main", provider::ContainerAction::kRestart, 0s, at(5s)).result.has_value());
  CHECK(cloud.get(id, at(11s)).result.value().state == InstanceState::kRunning);
  CHECK(cloud.get(id, at(15s)).result.value().state == InstanceState::kExited);
}

TEST_CASE("fake cloud: what cannot start says why") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto image = cloud.create(a_purchase("spw-a-1", {{"image-error", "no such tag"}}), at(0s)).result.value();
  CHECK(image.state == InstanceState::kFailed);
  CHECK(image.image_error);
  CHECK(image.message == "no such tag");
  CHECK(image.containers[0].reason == "ErrImagePull");

  const auto command = cloud.create(a_purchase("spw-a-2", {{"start-error", "no such file"}}), at(0s)).result.value();
  CHECK(command.state == InstanceState::kExited);
  CHECK(command.containers[0].exit_code == 128);
  CHECK(command.containers[0].reason == "StartError");

  const auto host = cloud.create(a_purchase("spw-a-3", {{"fail-boot", "host died"}}), at(0s)).result.value();
  CHECK(host.state == InstanceState::kFailed);
  CHECK_FALSE(host.image_error);

  const auto oom = cloud.create(a_purchase("spw-a-4", {{"oom", "true"}, {"run-for", "0"}}), at(0s)).result.value();
  CHECK(oom.containers[0].exit_code == 137);
  CHECK(oom.containers[0].oom_killed);
}

TEST_CASE("fake cloud: refuses a create with the ordered kind, unknown orders and unknown offers") {
  FakeCloud cloud(a_cloud(), cloud_start());
  CHECK(cloud.create(a_purchase("spw-a-1", {{"fail-create", "quota"}}), at(0s)).result.error().kind ==
        ErrorKind::kQuota);
  const auto typo = cloud.create(a_purchase("spw-a-2", {{"exitcode", "1"}}), at(0s)).result.error();
  CHECK(typo.kind == ErrorKind::kInvalid);
  CHECK(typo.message.find("fake.spillway.dev/exit-code?") != std::string::npos);
  CreateRequest unknown = a_purchase("spw-a-3");
  unknown.offer = "huge";
  CHECK(cloud.create(unknown, at(0s)).result.error().kind == ErrorKind::kNoCapacity);
  CHECK(cloud.size(at(1s)) == 0);
}

TEST_CASE("fake cloud: stock is sold, listed as sold out, and comes back") {
  CloudSettings settings = a_cloud();
  settings.offers[0].stock = 1;
  FakeCloud cloud(settings, cloud_start());
  const auto id = cloud.create(a_purchase("spw-a-1"), at(0s)).result.value().ref.id.str();
  CHECK_FALSE(cloud.list_offers(at(1s)).result.value()[0].available);
  CHECK(cloud.create(a_purchase("spw-a-2"), at(1s)).result.error().kind == ErrorKind::kNoCapacity);
  CHECK(cloud.create(a_purchase("spw-a-1"), at(1s)).result.has_value());
  cloud.terminate(id, 0s, at(2s));
  CHECK(cloud.list_offers(at(2s)).result.value()[0].available);
  CHECK(cloud.create(a_purchase("spw-a-2"), at(2s)).result.has_value());
}

TEST_CASE("fake cloud: killing behind the owner's back") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto removed = cloud.create(a_purchase("spw-a-1"), at(0s)).result.value().ref.id.str();
  CHECK(cloud.kill(removed, KillOrder(), at(1s)).has_value());
  CHECK(cloud.get(removed, at(1s)).result.error().kind == ErrorKind::kNotFound);

  const auto taken = cloud.create(a_purchase("spw-a-2"), at(0s)).result.value().ref.id.str();
  KillOrder preempt;
  preempt.how = KillOrder::How::kPreempt;
  CHECK(cloud.kill(taken, preempt, at(10s)).has_value());
  const auto notice = cloud.get(taken, at(39s)).result.value();
  CHECK(notice.state == InstanceState::kTerminating);
  CHECK(notice.preempted);
  CHECK_FALSE(cloud.get(taken, at(40s)).result.has_value());

  const auto crashed = cloud.create(a_purchase("spw-a-3"), at(50s)).result.value().ref.id.str();
  KillOrder crash;
  crash.how = KillOrder::How::kCrash;
  crash.exit_code = 9;
  CHECK(cloud.kill(crashed, crash, at(51s)).has_value());
  CHECK(cloud.get(crashed, at(51s)).result.value().containers[0].exit_code == 9);
  CHECK(cloud.kill("i-unknown", crash, at(51s)).error().kind == ErrorKind::kNotFound);

  const auto spot = cloud.create(a_purchase("spw-a-4", {{"preempt-after", "1m"}}), at(60s)).result.value().ref.id.str();
  CHECK(cloud.get(spot, at(119s)).result.value().state == InstanceState::kRunning);
  CHECK(cloud.get(spot, at(120s)).result.value().preempted);
  CHECK(cloud.audit(at(200s)).instances[3].ended_by == "preempt");
}

TEST_CASE("fake cloud: the invoice counts exact time, grain and minimum, and pauses while an instance is stopped") {
  CloudSettings settings = a_cloud();
  settings.offers[1].grain = 60s;
  settings.offers[1].minimum = 600s;
  FakeCloud cloud(settings, cloud_start());
  const auto id = cloud.create(a_purchase("spw-a-1", {{"run-for", "100s"}}), at(0s)).result.value().ref.id.str();
  CreateRequest large = a_purchase("spw-a-2");
  large.offer = "large";
  const auto large_id = cloud.create(large, at(0s)).result.value().ref.id.str();

  auto lines = cloud.invoice(at(50s));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].amount.micros() == 5000);  // 50 s at 0.36 $/h
  CHECK(lines[0].running);
  CHECK(lines[1].billed == 600s);
  CHECK(lines[1].amount.micros() == 6'000'000);

  lines = cloud.invoice(at(1h));  // the first has stopped by itself after 100 s
  CHECK(lines[0].amount.micros() == 10'000);
  CHECK_FALSE(lines[0].running);

  cloud.control(id, "main", provider::ContainerAction::kStart, 0s, at(1h));
  cloud.terminate(id, 0s, at(1h + 1500ms));
  cloud.terminate(large_id, 0s, at(1h + 1s));
  lines = cloud.invoice(at(2h));
  CHECK(lines[0].billed == 102s);
  CHECK(lines[0].amount.micros() == 10'200);
  CHECK(lines[1].billed == 3660s);
  CHECK(lines[1].amount.micros() == 36'600'000);
  CHECK_FALSE(lines[1].running);
}

TEST_CASE("fake cloud: prices walk within half and twice the list price, equally for equal seeds") {
  CloudSettings settings = a_cloud();
  settings.price_step = 1min;
  settings.price_permille = 200;
  FakeCloud one(settings, cloud_start());
  FakeCloud two(settings, cloud_start());
  bool moved = false;
  for (int minute = 1; minute <= 500; ++minute) {
    const auto price = one.list_offers(at(minute * 1min)).result.value()[0].price_per_hour.value();
    CHECK(price >= base::Money::from_micros(180'000));
    CHECK(price <= base::Money::from_micros(720'000));
    moved = moved || price != base::Money::from_micros(360'000);
  }
  CHECK(moved);
  const auto late = two.list_offers(at(500min)).result.value();
  CHECK(late[1].price_per_hour == one.list_offers(at(500min)).result.value()[1].price_per_hour);
  CHECK(two.create(a_purchase("spw-a-1"), at(500min)).result.value().price_per_hour == late[0].price_per_hour);
}

TEST_CASE("fake cloud: ids of one cloud never name an instance of another") {
  base::Now later = cloud_start();
  later.wall += 1s;
  FakeCloud one(a_cloud(), cloud_start());
  FakeCloud two(a_cloud(), later);
  const auto id = one.create(a_purchase("spw-a-1"), at(0s)).result.value().ref.id.str();
  CHECK(two.create(a_purchase("spw-a-1"), at(0s)).result.value().ref.id.str() != id);
  CHECK(two.get(id, at(1s)).result.error().kind == ErrorKind::kNotFound);
}

TEST_CASE("fake cloud: one that does not look at tags sells the same tag twice") {
  CloudSettings settings = a_cloud();
  settings.unique_tags = false;
  FakeCloud cloud(settings, cloud_start());
  const auto first = cloud.create(a_purchase("spw-a-1"), at(0s)).result.value();
  const auto second = cloud.create(a_purchase("spw-a-1"), at(1s)).result.value();
  CHECK(first.ref.id != second.ref.id);
  CHECK(cloud.size(at(2s)) == 2);
}

TEST_CASE("fake cloud: who observes it is told of every change, at its own time") {
  CloudSettings settings = a_cloud();
  settings.boot_time = 10s;
  std::vector<std::string> seen;
  settings.observer = [&](const Sight& sight) {
    const auto after = std::chrono::duration_cast<std::chrono::seconds>(sight.at - at(0s)).count();
    constexpr std::array kWords{"appeared", "changed", "gone"};
    seen.push_back(std::to_string(after) + " " + kWords.at(static_cast<size_t>(sight.what)) + " " +
                   std::string(to_string(sight.instance->state)) + (sight.foreign ? " foreign" : ""));
  };
  FakeCloud cloud(settings, cloud_start());
  const auto id = cloud.create(a_purchase("spw-a-1", {{"run-for", "20s"}}), at(0s)).result.value().ref.id.str();
  cloud.add_foreign("", at(40s));
  REQUIRE(cloud.terminate(id, 0s, at(50s)).result);
  CHECK(seen == std::vector<std::string>{"0 appeared pending", "10 changed running", "30 changed exited",
                                         "40 appeared pending foreign", "40 changed running foreign",
                                         "50 gone exited"});
}
