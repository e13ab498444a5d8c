// Doctor: why a node cannot be reached, or cannot be joined, from this machine. It goes the way
// that a joining node goes, one check after the other: name, connection, cluster key, handshake,
// version, cluster, run, model, what the node tells others, clocks, and whether that node can
// connect back to both planes. A failed check says what to do; a check that needs one that failed
// is not made.
//
// It joins nothing: its greeting is a probe (schema: HELLO) under a key made for this once, so that
// no member learns of it and no node's identity is used. Nothing outside the two machines is asked.
// Thread: one; blocks for at most half a minute. Errors of the network are checks, not errors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/config/config.h"
#include "schema/messages.h"

namespace kith::node {

enum class CheckResult { kOk, kFailed, kSkipped };
struct DoctorCheck {
  std::string name;  // "dns", "tcp", ...
  CheckResult result = CheckResult::kSkipped;
  std::string text;    // what was found, or why it was not looked at
  std::string remedy;  // of a failure: what to do
};

struct DoctorRequest {
  std::string address;  // host[:port], [IPv6][:port]
  Config config;        // this side's; keys that come from nowhere are not compared
  // Where this side would be dialled back; empty: nothing is.
  std::string listen;
};

// kUsage: the address makes no sense.
Result<std::vector<DoctorCheck>> diagnose(const DoctorRequest& request);
[[nodiscard]] bool healthy(const std::vector<DoctorCheck>& checks);

// The pure parts, by table in the tests.
// What a peer's first 64 bytes say (ZeroMQ's greeting, ZMTP 3).
enum class Greeting { kCurve, kNull, kOther };
Greeting read_greeting(std::string_view bytes);
// Whether this side's listening address can be the far end of a connection that leaves from `own`.
DoctorCheck judge_listen(const std::string& listen, const std::string& own);
// What a dial-back to one plane ("dial-back": control, "bulk") came to; `by_another`: the doctor
// could not listen there itself.
DoctorCheck judge_dial_back(const std::string& name, const std::optional<schema::DialBack>& answer,
                            bool by_another);
DoctorCheck judge_clocks(double here_seconds, double there_seconds);

}  // namespace kith::node
