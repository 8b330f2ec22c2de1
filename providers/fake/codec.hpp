// The fake cloud's nouns as JSON, for both ends of its socket.
//
// Pure; no exception leaves it. Decoding tolerates absent, null and mistyped optional fields; what a person writes
// (faults, kills) is read strictly instead: an unknown key is an error that names the nearest valid one. Money is in
// whole micro-dollars, times are RFC 3339, durations that people write are texts like 2s.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/fake/fake_cloud_types.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::providers::fake {

std::string encode_offers(const std::vector<model::Offer>& offers);
base::Result<std::vector<model::Offer>> decode_offers(std::string_view json);

std::string encode_create(const CreateRequest& request);
base::Result<CreateRequest> decode_create(std::string_view json);

std::string encode_instance(const model::Instance& instance);
base::Result<model::Instance> decode_instance(std::string_view json);

std::string encode_list(const provider::OwnedList& list);
base::Result<provider::OwnedList> decode_list(std::string_view json);

std::string encode_log_page(const LogPage& page);
base::Result<LogPage> decode_log_page(std::string_view json);

std::string encode_samples(const std::vector<provider::Sample>& samples);
base::Result<std::vector<provider::Sample>> decode_samples(std::string_view json);

/// {"error": {"kind": ..., "message": ..., "retryAfterMs": ...}}
std::string encode_error(const base::Error& error);
/// Empty if the text is no such object: then the fake cloud did not write it.
std::optional<base::Error> decode_error(std::string_view json);

/// One rule, or a list of them.
base::Result<std::vector<FaultRule>> decode_faults(std::string_view json);
base::Result<KillOrder> decode_kill(std::string_view json);
/// {"tag": ...}; an empty body is an empty tag.
base::Result<std::string> decode_foreign(std::string_view json);

std::string encode_fault_numbers(const std::vector<std::uint64_t>& numbers);
std::string encode_id(const std::string& id);
std::string encode_invoice(const std::vector<InvoiceLine>& lines);
std::string encode_audit(const Audit& audit);

}  // namespace spillway::providers::fake
