// Named fault points in production code, inert unless a test arms them (FoundationDB's "buggify",
// narrowed to crashes and delays at protocol steps). Armed only through the environment variable
// KITH_FAULTS, read once at start by node/ and handed in here: "name=kill@N" ends the process with
// SIGKILL at the N-th passage, "name=stop@N" raises SIGSTOP, "name=wait@N" keeps the passing thread
// for 4 s, as a slow disk would, "name=hang@N" for ever. An unknown name is an error, so that a
// test cannot pass by misspelling one.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace kith {

// Every point there is; a name is added here and in the code at once.
enum class FaultPoint {
  kProposeSent,        // initiator: PROPOSE header handed to the transport
  kProposeChunkSent,   // initiator: one chunk of a proposal handed over
  kProposeReceived,    // responder: PROPOSE header accepted
  kChunkReceived,      // either side: one chunk taken
  kBeforeCommit,       // responder: all chunks there, nothing applied
  kAfterCommit,        // responder: applied and in the ledger, nothing sent
  kResultSent,         // responder: RESULT header handed over
  kBeforeApply,        // initiator: result complete, not applied
  kAfterApply,         // initiator: applied, no ACK sent
  kAckSent,            // initiator: ACK handed over
  kAckReceived,        // responder: entry freed
  kCheckpointWritten,  // checkpoint: temporary file complete, not renamed
  kCheckpointRenamed,  // checkpoint: renamed, folder not fsynced
  kExportOpened,       // export of a live state: temporary file made, no value in it
  kCount,
};
std::string_view to_string(FaultPoint point);
std::vector<std::string_view> fault_point_names();

// Parses and arms (process wide: a crash is a process-wide thing). Empty text disarms.
Status arm_faults(std::string_view spec);
// The passage. Costs one relaxed load when nothing is armed.
void pass(FaultPoint point);

}  // namespace kith
