// What is special to pods among the rules: their status, and what of a bound pod may be edited.
//
// Pure.
#pragma once

#include <vector>

#include "test/support/api_model/api_error.hpp"
#include "test/support/api_model/object.hpp"

namespace spillway::test::api_model {

/// Status and the defaults that others read: restartPolicy and terminationGracePeriodSeconds.
void default_new_pod(Draft& pod);

/// A write through /status: what it does not say but must not lose, and podIP and podIPs made to agree.
void complete_pod_status(const Object& old, Draft& wanted);
void validate_pod_status(const Object& old, const Draft& wanted, std::vector<FieldError>& errors);

/// A write of the pod itself: only images, tolerations and a few others may change.
void validate_pod_spec_update(const Object& old, const Draft& wanted, std::vector<FieldError>& errors);

}  // namespace spillway::test::api_model
