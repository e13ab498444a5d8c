// Identity of a node, and what its data directory must have before the first message is sent:
//   lock          held (flock) as long as the daemon lives; held by another: exit 7
//   identity.key  Ed25519 seed, 64 hex characters, mode 0600; wider: refused. Made on first start
//   incarnation   boot counter, raised and fsynced before the first message
// Thread: construct on one; sign() on any.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "schema/messages.h"

namespace kith::node {

class Identity {
 public:
  // Loads or makes data_dir/identity.key.
  static Result<Identity> load_or_create(const std::string& data_dir);
  static Identity ephemeral(std::uint64_t seed);  // tests
  [[nodiscard]] const NodeId& id() const { return id_; }
  [[nodiscard]] schema::Signature sign(const Hash256& hash) const;

 private:
  NodeId id_;
  std::array<std::uint8_t, 64> secret_{};
};
bool verify(const NodeId& id, const Hash256& hash, const schema::Signature& signature);
// Signs / checks a record (signing_hash).
void sign_record(const Identity& identity, schema::MemberRecord& record);
bool verify_record(const schema::MemberRecord& record);

// Exclusive hold on a data directory; makes the directory (0700) when absent.
class DataDirLock {
 public:
  static Result<DataDirLock> acquire(
      const std::string& data_dir);  // kDataDirInUse names the directory and the holder's pid
  DataDirLock(DataDirLock&& other) noexcept;
  DataDirLock& operator=(DataDirLock&&) = delete;
  ~DataDirLock();

 private:
  explicit DataDirLock(int fd) : fd_(fd) {}
  int fd_;
};

// Raises the persisted boot counter and returns (boot << 32). `at_least`: highest incarnation
// others hold for us.
Result<Incarnation> next_incarnation(const std::string& data_dir, Incarnation at_least = 0);

}  // namespace kith::node
