// providers/README.md says which field of a pod which provider honours. The table there is made here, from the rows of
// kube/pod_fields and the capabilities of the built-in providers; `unit_tests '[.fields]'` prints it anew.
#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "providers/builtin.hpp"
#include "test/support/document_part.hpp"
#include "vk-provider/kube/pod_fields.hpp"

namespace spillway {
namespace {

using kube::FieldClass;
using kube::FieldRule;
using model::Capability;

constexpr std::string_view kDocument = SPILLWAY_SOURCE_DIR "/providers/README.md";

/// Fields of one place that are treated alike.
struct Row {
  std::string place;                // spec.containers[]
  std::vector<std::string> fields;  // below it
  FieldClass treatment = FieldClass::kNeeds;
  std::optional<Capability> needs;
};

std::string field_of(const FieldRule& rule) {
  // A key of a map may hold dots: limits[nvidia.com/gpu].
  const size_t key = rule.path.find_last_of('[');
  const bool map = rule.path.ends_with(']') && !rule.path.ends_with("[]");
  const size_t dot = rule.path.rfind('.', map ? key : std::string_view::npos);
  std::string text = "`" + std::string(rule.path.substr(dot + 1)) + "`";
  if (rule.harmless.empty()) return text;
  std::string words(rule.harmless);
  for (size_t i = words.find('|'); i != std::string::npos; i = words.find('|', i)) words.replace(i, 1, "`, `");
  return text + " (but `" + words + "`)";
}

std::string place_of(const FieldRule& rule) {
  const bool map = rule.path.ends_with(']') && !rule.path.ends_with("[]");
  const size_t dot = rule.path.rfind('.', map ? rule.path.find_last_of('[') : std::string_view::npos);
  return std::string(rule.path.substr(0, dot));
}

/// A row that only says which fields there are inside one that needs something is of no use to readers.
bool is_detail(const FieldRule& rule) {
  if (rule.treatment == FieldClass::kNeeds) return false;
  const FieldRule* const above = kube::find_pod_field_rule(place_of(rule));
  return above != nullptr && above->treatment == FieldClass::kNeeds;
}

void add(std::vector<Row>& rows, const std::string& place, const std::string& field, FieldClass treatment,
         std::optional<Capability> needs) {
  const auto same = std::ranges::find_if(
      rows, [&](const Row& row) { return row.place == place && row.treatment == treatment && row.needs == needs; });
  Row& row = same == rows.end() ? rows.emplace_back(Row{place, {}, treatment, needs}) : *same;
  row.fields.push_back(field);
}

std::vector<Row> make_rows() {
  std::vector<Row> rows;
  add(rows, "spec", "`containers[]`, the second and more", FieldClass::kNeeds, Capability::kMultiContainer);
  for (const FieldRule& rule : kube::pod_field_rules()) {
    if (is_detail(rule)) continue;
    add(rows, place_of(rule), field_of(rule), rule.treatment, rule.needs);
    if (rule.path == "spec.volumes[].emptyDir") {
      add(rows, "spec.volumes[]", "`emptyDir` with medium Memory", FieldClass::kNeeds, Capability::kShm);
    }
  }
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return std::tuple(a.place, a.treatment, a.needs.value_or(Capability::kCount)) <
           std::tuple(b.place, b.treatment, b.needs.value_or(Capability::kCount));
  });
  return rows;
}

std::string cell_of(const Row& row, const model::CapabilitySet& capabilities) {
  if (row.treatment == FieldClass::kHonoured) return "yes";
  if (row.treatment == FieldClass::kAccepted) return "no effect";
  if (!row.needs) return "refused";
  return capabilities.has(*row.needs) ? "yes" : "no";
}

std::vector<std::string> make_table() {
  const provider::Registry registry = providers::builtin_providers();
  std::string head = "| place | field | needs |";
  std::string line = "| --- | --- | --- |";
  for (const auto& [name, type] : registry) {
    head += " " + name + " |";
    line += " --- |";
  }
  std::vector<std::string> out{head, line};
  for (const Row& row : make_rows()) {
    std::string text = "| `" + row.place + "` | ";
    for (size_t i = 0; i < row.fields.size(); ++i) text += (i == 0 ? "" : ", ") + row.fields[i];
    text += " | " + (row.needs ? std::string(to_string(*row.needs)) : std::string("-")) + " |";
    for (const auto& [name, type] : registry) text += " " + cell_of(row, type.capabilities) + " |";
    out.push_back(text);
  }
  return out;
}

TEST_CASE("the document of providers says which fields they honour") {
  const std::vector<std::string> code = make_table();
  const std::vector<std::string> document = test::part_of_document(kDocument, "table of fields");
  INFO("unit_tests '[.fields]' prints the table as it is now; it stands in " << kDocument);
  for (size_t i = 0; i < std::max(code.size(), document.size()); ++i) {
    const std::string found = i < code.size() ? code[i] : "(the table ends)";
    const std::string written = i < document.size() ? document[i] : "(the document ends)";
    REQUIRE(written == found);
  }
  REQUIRE(code.size() > 40);
}

TEST_CASE("print the table of fields", "[.fields]") {
  for (const std::string& line : make_table()) std::cout << line << "\n";
}

}  // namespace
}  // namespace spillway
