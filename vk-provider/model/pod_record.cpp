#include "vk-provider/model/pod_record.hpp"

namespace spillway::model {

std::string_view to_string(WaitReason why) {
  switch (why) {
    case WaitReason::kRefused: return "UnsupportedPodSpec";
    case WaitReason::kInvalidImage: return "InvalidImageName";
    case WaitReason::kConfig: return "CreateContainerConfigError";
    case WaitReason::kMount: return "ContainerCreating";
    case WaitReason::kNoCapacity: return "NoCapacity";
    case WaitReason::kBudget: return "BudgetExceeded";
    case WaitReason::kLaunchBackOff: return "LaunchBackOff";
    case WaitReason::kProviderUnavailable: return "ProviderUnavailable";
    case WaitReason::kImagePull: return "ImagePullBackOff";
    case WaitReason::kStartFailed: return "StartFailed";
    case WaitReason::kUnreadableState: return "UnreadableState";
  }
  return "Waiting";
}

std::string_view to_string(StopReason why) {
  switch (why) {
    case StopReason::kDeleted: return "deleted";
    case StopReason::kCompleted: return "completed";
    case StopReason::kImagePull: return "image_pull";
    case StopReason::kBootFailed: return "boot_failed";
    case StopReason::kStartTimeout: return "start_timeout";
    case StopReason::kTooDear: return "too_dear";
    case StopReason::kLost: return "lost";
    case StopReason::kEvicted: return "evicted";
    case StopReason::kTerminalPod: return "terminal_pod";
  }
  return "deleted";
}

}  // namespace spillway::model
