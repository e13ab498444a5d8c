// Which data directory a node takes. node.data_dir is either a directory, or "auto:PARENT": then
// the node takes a directory PARENT/node-1, PARENT/node-2, … of its own. This is for replicas of
// one service that share a volume and know nothing that tells them apart from the start.
//
// What is taken, first that is free: the directory that this host had last (its file `host` says
// so; the host name of a container stays the same when it is started again), then any other that
// exists, lowest number first, then a new one. Free means that nobody holds its lock (DataDirLock),
// so a directory whose process was killed is free at once, and two that start at the same moment
// never get the same.
//
// Errors: kUsage when PARENT or a directory in it cannot be used, also when a `host` in it is no
// regular file (it is never waited for); kDataDirInUse when a directory
// that was named is held, or kDirectoriesMax are.
#pragma once

#include <string>

#include "base/result.h"
#include "node/identity/identity.h"

namespace kith::node {

inline constexpr int kDirectoriesMax = 10000;

struct DataDir {
  std::string path;
  DataDirLock lock;
};

// "auto:PARENT"?
bool is_automatic(const std::string& data_dir);
Result<DataDir> take_data_dir(const std::string& data_dir, const std::string& host);

// Where a daemon of this host is, for those that look for one: of "auto:PARENT" the directory that
// this host took and in which a daemon left its socket; what is not automatic is returned as it is.
// kNoDaemon when there is none.
Result<std::string> find_data_dir(const std::string& data_dir, const std::string& host);

}  // namespace kith::node
