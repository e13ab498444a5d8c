// Always-on checks of invariants. A failed check is a bug in kith: it prints which invariant broke and
// where, and aborts, in every build type. Never use it on input (files, network, flags): that is a Result.
#pragma once

#include <string>

namespace kith {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace kith

// KITH_CHECK(condition, "what must hold, and with which values"): the message is evaluated only on failure.
#define KITH_CHECK(condition, message)                                                \
  do {                                                                                \
    if (!(condition)) [[unlikely]]                                                    \
      ::kith::check_failed(__FILE__, __LINE__, #condition, (message));                \
  } while (false)
