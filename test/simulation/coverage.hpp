// "Sometimes" counters: what a run must have reached now and then, or its silence proves nothing.
//
// A value; runs are added up. The names are a closed list, so that one that is never reached is seen.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spillway::simulation {

// One line each: the name that people read. A new counter is a new line here and one call of reach().
#define SPILLWAY_SIMULATION_COUNTERS(X)                           \
  X(kRunning, "a pod came to run")                                \
  X(kSucceeded, "a pod succeeded")                                \
  X(kFailed, "a pod failed")                                      \
  X(kRefused, "a pod was refused")                                \
  X(kLaunchHeld, "a failing owner had to wait")                   \
  X(kRestarted, "a container was started again")                  \
  X(kLost, "a pod lost its instance")                             \
  X(kPreempted, "an instance was taken back")                     \
  X(kTooDear, "an instance was too dear")                         \
  X(kBudgetFull, "the budget was used up")                        \
  X(kSecondAttempt, "a pod got a second attempt")                 \
  X(kDiscarded, "an old pod that had failed was removed")         \
  X(kForced, "a pod was deleted by force")                        \
  X(kDeletedWhileDown, "a pod was deleted while no daemon ran")   \
  X(kRecreated, "a name was used again at once")                  \
  X(kFinalizer, "a finalizer held a deleted pod")                 \
  X(kTampered, "somebody wrote on our annotation")                \
  X(kEndedByOthers, "somebody else ended a pod")                  \
  X(kOrphanEnded, "an instance without a pod was ended")          \
  X(kForeignSeen, "a foreign instance stood beside ours")         \
  X(kGhost, "an instance appeared after an error")                \
  X(kCreateLost, "the answer to a create was lost")               \
  X(kCarriedOn, "a create was repeated and found its instance")   \
  X(kSoldOut, "an offer was sold out")                            \
  X(kRateLimited, "a cloud asked to wait")                        \
  X(kAccountFull, "an account was full")                          \
  X(kUnauthenticated, "a cloud refused our credentials")          \
  X(kImageError, "an image could not be pulled")                  \
  X(kNeverBooted, "an instance that never ran was given back")    \
  X(kPartialList, "a listing was incomplete")                     \
  X(kEmptyList, "a listing left everything out and did not say")  \
  X(kStuck, "a termination was stuck")                            \
  X(kApiLost, "a request to the API server was lost")             \
  X(kApiAnswerLost, "an answer of the API server was lost")       \
  X(kApiBusy, "the API server asked to wait")                     \
  X(kApiBroken, "the API server answered 500")                    \
  X(kApiTimeout, "the API server answered 504 to what it did")    \
  X(kApiRejected, "the API server rejected a status")             \
  X(kApiConflict, "a write was answered 409, and none was newer") \
  X(kOvertaken, "somebody wrote just before the daemon did")      \
  X(kIntentConflict, "a write to a pod met a newer one")          \
  X(kWatchCut, "a watch was cut")                                 \
  X(kWatchSilent, "a watch fell silent")                          \
  X(kWatchTooOld, "a watch was answered 410")                     \
  X(kRelisted, "the pods were listed again")                      \
  X(kKilled, "a daemon was killed")                               \
  X(kKilledBuying, "a daemon was killed with a create under way") \
  X(kStopped, "a daemon stopped in order")                        \
  X(kKilledStopping, "a daemon was killed while it stopped")      \
  X(kFrozen, "a daemon was frozen past its lease")                \
  X(kTakenOver, "another daemon took the lease over")             \
  X(kClockJump, "a wall clock jumped")

enum class Counter : std::uint8_t {
#define X(name, text) name,
  SPILLWAY_SIMULATION_COUNTERS(X)
#undef X
      kCount
};

class Coverage {
 public:
  static constexpr size_t kSize = static_cast<size_t>(Counter::kCount);

  void reach(Counter c, std::uint64_t times = 1) { counts_.at(static_cast<size_t>(c)) += times; }
  std::uint64_t operator[](size_t i) const { return counts_.at(i); }
  void add(const Coverage& other) {
    for (size_t i = 0; i < kSize; ++i) counts_.at(i) += other.counts_.at(i);
  }
  static std::string_view name(size_t i) {
    static constexpr std::array<std::string_view, kSize> kNames{
#define X(name, text) text,
        SPILLWAY_SIMULATION_COUNTERS(X)
#undef X
    };
    return kNames.at(i);
  }

 private:
  std::array<std::uint64_t, kSize> counts_{};
};

}  // namespace spillway::simulation
