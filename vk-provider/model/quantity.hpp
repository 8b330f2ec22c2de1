// Kubernetes quantities: `500m`, `1Gi`, `2e3`, `0.5`.
//
// Pure. The grammar is that of k8s.io/apimachinery/pkg/api/resource.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::model {

/// The value in whole units, rounded up (`1500m` -> 2). Empty if the text is no quantity or does not fit.
std::optional<std::int64_t> quantity_value(std::string_view text);
/// The value in thousandths, rounded up (`0.5` -> 500). Empty if the text is no quantity or does not fit.
std::optional<std::int64_t> quantity_milli(std::string_view text);
/// In the largest binary unit that leaves no rest: 1073741824 -> `1Gi`, 1000 -> `1000`.
std::string quantity_text(std::int64_t value);

}  // namespace spillway::model
