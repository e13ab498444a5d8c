// Result: how expected failures travel in kith.
//
// Three kinds of failure exist. An expected one (bad file, refused peer, full disk) is a Result with a
// message that names the file, key, peer or address and says what to do. A bug is a failed KITH_CHECK
// (check.h). An exception lives only inside the call into a library that throws, and becomes a Result
// right there. Thread: values, no shared state.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace kith {

// A code exists only where some caller reacts to it: the exit codes of the programs, and the few that
// protocols answer to. Everything else is in the message.
enum class ErrorCode {
  kFailed,           // exit 1
  kUsage,            // exit 2: configuration, flags, values out of range
  kNoDaemon,         // exit 3: nobody answers at --at
  kNoSeed,           // exit 4: no seed reached within --join-timeout
  kIncompatible,     // exit 5: another run, model or protocol
  kAddressInUse,     // exit 6
  kDataDirInUse,     // exit 7: data directory locked, or identity taken
  kDataRefused,      // exit 8: training data or model input unusable
  kUnhealthy,        // exit 10
  kNotFound,         // a file or key that may legitimately be absent
  kCorrupt,          // bytes that fail their hash or their format
  kNonFinite,        // NaN or infinity where numbers must be finite
  kBusy,             // no room now; ask another peer
};

struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string message;
};

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

// A Result that carries nothing but success.
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message)});
}
inline tl::unexpected<Error> fail(std::string message) {
  return tl::make_unexpected(Error{ErrorCode::kFailed, std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::make_unexpected(std::move(error)); }

// Documented process exit code of an error (interface: kithd and kith).
int exit_code(ErrorCode code);

// KITH_TRY(expr): returns the error of `expr` (a Result or Status) from the enclosing function.
// KITH_ASSIGN(decl, expr): the same, and otherwise binds the value to `decl`.
#define KITH_CONCAT_INNER(a, b) a##b
#define KITH_CONCAT(a, b) KITH_CONCAT_INNER(a, b)
#define KITH_TRY(expr)                                              \
  do {                                                              \
    if (auto kith_status = (expr); !kith_status)                    \
      return ::kith::fail(std::move(kith_status.error()));          \
  } while (false)
#define KITH_ASSIGN(decl, expr) KITH_ASSIGN_IMPL(KITH_CONCAT(kith_result_, __LINE__), decl, expr)
#define KITH_ASSIGN_IMPL(name, decl, expr)                          \
  auto name = (expr);                                               \
  if (!name) return ::kith::fail(std::move(name.error()));          \
  decl = std::move(*name)

}  // namespace kith
