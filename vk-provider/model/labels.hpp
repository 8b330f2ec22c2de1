// Every label, annotation, taint and condition name that Spillway reads or writes, once.
#pragma once

#include <string_view>

namespace spillway::model {

// What users may write on a pod. An unknown key under this prefix is refused with the nearest valid name.
inline constexpr std::string_view kUserPrefix = "spillway.dev/";
inline constexpr std::string_view kAnnotationPublicPorts = "spillway.dev/public-ports";
// "true": a token of the pod's service account goes to the rented machine; without it none ever does.
inline constexpr std::string_view kAnnotationSendToken = "spillway.dev/send-service-account-token";
// What a pod wants of the machine that is rented for it (model/wishes.hpp, core/wishes.hpp).
inline constexpr std::string_view kAnnotationGpuModel = "spillway.dev/gpu-model";
inline constexpr std::string_view kAnnotationMinVram = "spillway.dev/min-vram";
inline constexpr std::string_view kAnnotationCudaMin = "spillway.dev/cuda-min";
inline constexpr std::string_view kAnnotationMaxPrice = "spillway.dev/max-price";
inline constexpr std::string_view kAnnotationValueOfTime = "spillway.dev/value-of-time";
inline constexpr std::string_view kAnnotationExpectedRuntime = "spillway.dev/expected-runtime";
inline constexpr std::string_view kAnnotationCapacityType = "spillway.dev/capacity-type";
inline constexpr std::string_view kAnnotationCheckpointInterval = "spillway.dev/checkpoint-interval";
inline constexpr std::string_view kAnnotationImageSize = "spillway.dev/image-size";
inline constexpr std::string_view kAnnotationRegions = "spillway.dev/regions";
inline constexpr std::string_view kAnnotationCountries = "spillway.dev/countries";
inline constexpr std::string_view kAnnotationProviders = "spillway.dev/providers";
inline constexpr std::string_view kAnnotationTier = "spillway.dev/tier";
inline constexpr std::string_view kAnnotationTrust = "spillway.dev/trust";
// "true": the drain leaves the pod where it is.
inline constexpr std::string_view kAnnotationDoNotDrain = "spillway.dev/do-not-drain";
// On a pod that the drain has taken from its ReplicaSet: the value that its label pod-template-hash had.
inline constexpr std::string_view kAnnotationDraining = "spillway.dev/draining";
inline constexpr std::string_view kLabelTemplateHash = "pod-template-hash";
// What users of the descheduler write.
inline constexpr std::string_view kAnnotationEvict = "descheduler.alpha.kubernetes.io/evict";
inline constexpr std::string_view kAnnotationPreferNoEviction = "descheduler.alpha.kubernetes.io/prefer-no-eviction";
// Orders to the fake cloud, for trials and tests; ignored by every other provider.
inline constexpr std::string_view kFakePrefix = "fake.spillway.dev/";

// What only the daemon writes on a pod; see kube/state_annotation_codec.cpp for the format of kAnnotationState.
inline constexpr std::string_view kStatePrefix = "state.spillway.dev/";
inline constexpr std::string_view kAnnotationState = "state.spillway.dev/placement";
inline constexpr std::string_view kAnnotationAddresses = "state.spillway.dev/addresses";
// Why the offer was chosen, in one line for people; nobody reads it back.
inline constexpr std::string_view kAnnotationWhy = "state.spillway.dev/why";
inline constexpr std::string_view kAnnotationWithheld = "state.spillway.dev/withheld";
// Of Kubernetes: of equal pods a ReplicaSet that is scaled down removes the one with the lowest first.
inline constexpr std::string_view kAnnotationDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
// What the drain must know of a pod that it has taken from its ReplicaSet; kube/drain_codec.cpp has the format.
inline constexpr std::string_view kAnnotationDrain = "state.spillway.dev/drain";

// Node.
inline constexpr std::string_view kTaintProviderKey = "virtual-kubelet.io/provider";
inline constexpr std::string_view kTaintProviderValue = "spillway";
inline constexpr std::string_view kLabelInstallation = "spillway.dev/installation";
inline constexpr std::string_view kLabelProfile = "spillway.dev/profile";
inline constexpr std::string_view kConditionProvidersReachable = "SpillwayProvidersReachable";

// The capacity gate, on our nodes: its taint while home has room, the taint that always prefers home, what it thinks,
// and what people order on a Node.
inline constexpr std::string_view kTaintGateKey = "spillway.dev/home-has-capacity";
inline constexpr std::string_view kTaintPreferHomeKey = "spillway.dev/prefer-home";
inline constexpr std::string_view kConditionGate = "SpillwayGate";
inline constexpr std::string_view kAnnotationGate = "spillway.dev/gate";
inline constexpr std::string_view kAnnotationGateUntil = "spillway.dev/gate-until";
// On a node of home, written by a health agent: how many of its GPUs are sick.
inline constexpr std::string_view kAnnotationUnhealthyGpus = "spillway.dev/unhealthy-gpus";

// Our EndpointSlices, beside kLabelInstallation.
inline constexpr std::string_view kLabelServiceName = "kubernetes.io/service-name";
inline constexpr std::string_view kLabelEndpointManager = "endpointslice.kubernetes.io/managed-by";
inline constexpr std::string_view kLabelHeadless = "service.kubernetes.io/headless";
inline constexpr std::string_view kLabelZone = "topology.kubernetes.io/zone";

inline constexpr std::string_view kResourceNvidiaGpu = "nvidia.com/gpu";
inline constexpr std::string_view kResourceAmdGpu = "amd.com/gpu";

// fieldManager of everything that we apply, and reportingComponent of our events.
inline constexpr std::string_view kFieldManager = "spillway";

}  // namespace spillway::model
