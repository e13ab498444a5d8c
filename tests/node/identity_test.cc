#include "node/identity/identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/schema/samples.h"

namespace {
std::atomic<int> files_synced{0}, directories_synced{0};
std::atomic<bool> sync_fails{false};
}  // namespace

// Stands before libc's: what must survive a power failure can be seen to be synced, and syncing can
// fail.
extern "C" int fsync(int fd) {
  struct stat info {};
  ::fstat(fd, &info);
  (S_ISDIR(info.st_mode) ? directories_synced : files_synced) += 1;
  if (!sync_fails) return static_cast<int>(::syscall(SYS_fsync, fd));
  errno = EIO;
  return -1;
}

namespace kith::node {
namespace {

namespace fs = std::filesystem;

class DataDir : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kith-identity-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override {
    sync_fails = false;
    fs::remove_all(dir_);
  }
  std::string file(const char* name) const { return dir_ + "/" + name; }
  std::string content(const char* name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const char* name, const std::string& text, mode_t mode = 0600) const {
    std::ofstream(file(name), std::ios::binary) << text;
    ::chmod(file(name).c_str(), mode);
  }
  std::string dir_;
};

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777U;
}

template <typename R>
void expect_error(const R& result, ErrorCode code, std::initializer_list<std::string> says) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code);
  for (const std::string& part : says)
    EXPECT_NE(result.error().message.find(part), std::string::npos)
        << result.error().message << "\nlacks " << part;
}

using IdentityKey = DataDir;
using IncarnationFile = DataDir;
using Lock = DataDir;

TEST_F(IdentityKey, IsMadeOnFirstStartForTheOwnerOnlyAndKept) {
  ::umask(0);  // must not matter
  const auto first = Identity::load_or_create(dir_);
  ::umask(022);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(mode_of(file("identity.key")), 0600U);
  EXPECT_EQ(content("identity.key").size(), 65U);
  const auto second = Identity::load_or_create(dir_);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->id(), second->id());
  EXPECT_FALSE(first->id().is_zero());
}

TEST_F(IdentityKey, IsOnDiskBeforeItIsUsed) {
  files_synced = directories_synced = 0;
  ASSERT_TRUE(Identity::load_or_create(dir_));
  EXPECT_EQ(files_synced, 1);
  EXPECT_EQ(directories_synced, 1);
}

TEST_F(IdentityKey, DiffersBetweenNodes) {
  const auto a = Identity::load_or_create(dir_ + "/a");
  const auto b = Identity::load_or_create(dir_ + "/b");
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->id(), b->id());
}

TEST_F(IdentityKey, ThatOthersMayReadIsRefusedNamingModeAndCure) {
  ASSERT_TRUE(Identity::load_or_create(dir_));
  for (const mode_t mode : {0640U, 0604U, 0644U, 0610U, 0602U}) {
    ::chmod(file("identity.key").c_str(), mode);
    char octal[8];
    std::snprintf(octal, sizeof octal, "%04o", mode);
    expect_error(Identity::load_or_create(dir_), ErrorCode::kUsage,
                 {octal, "chmod 600 " + file("identity.key")});
  }
  ::chmod(file("identity.key").c_str(), 0400);
  EXPECT_TRUE(Identity::load_or_create(dir_));
}

TEST_F(IdentityKey, ThatIsDamagedIsRefusedAndNotReplaced) {
  for (const std::string& text :
       {std::string(), std::string("12ab\n"), std::string(63, 'a'), std::string(64, 'g'),
        std::string(65, 'a'), std::string(100000, 'a'), std::string(64, '\0')}) {
    write("identity.key", text);
    expect_error(Identity::load_or_create(dir_), ErrorCode::kCorrupt,
                 {file("identity.key"), "64 hexadecimal", "restore it", "empty --data-dir"});
    EXPECT_EQ(content("identity.key"), text);
  }
}

TEST_F(IdentityKey, ErrorsNeverShowTheSecret) {
  const std::string secret(63, 'a');
  write("identity.key", secret);
  EXPECT_EQ(Identity::load_or_create(dir_).error().message.find("aaaa"), std::string::npos);
}

TEST_F(IdentityKey, ThatIsADirectoryIsRefused) {
  fs::create_directory(file("identity.key"));
  expect_error(Identity::load_or_create(dir_), ErrorCode::kUsage,
               {"identity.key", "not a regular file"});
}

TEST_F(IdentityKey, LeftHalfWrittenByAKilledStartIsMadeAnew) {
  write("identity.key.tmp", "1234");
  ASSERT_TRUE(Identity::load_or_create(dir_));
  EXPECT_FALSE(fs::exists(file("identity.key.tmp")));
}

TEST_F(IdentityKey, ThatCannotBeSyncedIsAnError) {
  sync_fails = true;
  expect_error(Identity::load_or_create(dir_), ErrorCode::kFailed,
               {"identity.key", "Input/output error"});
  EXPECT_FALSE(fs::exists(file("identity.key")));
}

TEST(EphemeralIdentity, IsAFunctionOfItsSeed) {
  EXPECT_EQ(Identity::ephemeral(1).id(), Identity::ephemeral(1).id());
  EXPECT_NE(Identity::ephemeral(1).id(), Identity::ephemeral(2).id());
}

TEST(Signature, HoldsForItsKeyAndHashOnly) {
  const Identity identity = Identity::ephemeral(1);
  const Hash256 hash = Hasher().add("x").finish();
  schema::Signature signature = identity.sign(hash);
  EXPECT_TRUE(verify(identity.id(), hash, signature));
  EXPECT_FALSE(verify(Identity::ephemeral(2).id(), hash, signature));
  EXPECT_FALSE(verify(identity.id(), Hasher().add("y").finish(), signature));
  EXPECT_FALSE(verify(NodeId{}, hash, signature));
  signature[63] ^= 1;
  EXPECT_FALSE(verify(identity.id(), hash, signature));
}

schema::MemberRecord signed_record() {
  const Identity identity = Identity::ephemeral(7);
  auto record = std::get<schema::Leave>(schema::sample_messages()[4]).record;
  record.id = identity.id();
  sign_record(identity, record);
  return record;
}

// That every field counts is shown field by field for signing_hash (tests/schema).
TEST(RecordSignature, HoldsUntilWhatTheOwnerSaidIsChanged) {
  EXPECT_TRUE(verify_record(signed_record()));
  schema::MemberRecord other_address = signed_record();
  other_address.control_address = "127.0.0.1:1";
  EXPECT_FALSE(verify_record(other_address));
  schema::MemberRecord later = signed_record();
  ++later.incarnation;
  EXPECT_FALSE(verify_record(later));
  schema::MemberRecord other_id = signed_record();
  other_id.id = Identity::ephemeral(8).id();
  EXPECT_FALSE(verify_record(other_id));
}

TEST(RecordSignature, LeavesTheStateToOthers) {
  schema::MemberRecord record = signed_record();
  record.state = schema::MemberState::kSuspect;
  EXPECT_TRUE(verify_record(record));
}

TEST_F(IncarnationFile, RisesStrictlyWithEachStart) {
  Incarnation last = 0;
  for (std::uint64_t boot = 1; boot <= 3; ++boot) {
    const auto next = next_incarnation(dir_);
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_EQ(*next, boot << 32);
    EXPECT_GT(*next, last);
    last = *next;
  }
  EXPECT_EQ(content("incarnation"), "3\n");
}

TEST_F(IncarnationFile, IsOnDiskBeforeItIsReturned) {
  files_synced = directories_synced = 0;
  ASSERT_TRUE(next_incarnation(dir_));
  EXPECT_EQ(files_synced, 1);
  EXPECT_EQ(directories_synced, 1);
}

TEST_F(IncarnationFile, GoesAboveWhatOthersHoldIfItWasLost) {
  const Incarnation held = (41ULL << 32) | 17;  // with refutations
  const auto next = next_incarnation(dir_, held);
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, 42ULL << 32);
  EXPECT_EQ(*next_incarnation(dir_, held), 43ULL << 32);
}

TEST_F(IncarnationFile, ThatIsGarbageIsAClearErrorAndIsKept) {
  for (const std::string& text :
       {std::string(), std::string("x\n"), std::string("12"), std::string("12\n\n"),
        std::string("-1\n"), std::string("4294967296\n"), std::string(5000, '1'),
        std::string("1\0\n", 3)}) {
    write("incarnation", text);
    expect_error(next_incarnation(dir_), ErrorCode::kCorrupt,
                 {file("incarnation"), "boot counter", "remove it", "checkpoints", "--join"});
    EXPECT_EQ(content("incarnation"), text);
  }
}

TEST_F(IncarnationFile, IsNotDrivenToItsEndByALie) {
  write("incarnation", "5\n");
  expect_error(next_incarnation(dir_, 0xFFFFFFFFULL << 32), ErrorCode::kCorrupt,
               {"4294967295", "refused"});
  EXPECT_EQ(*next_incarnation(dir_), 6ULL << 32);
}

TEST_F(IncarnationFile, AtItsEndIsAClearError) {
  write("incarnation", "4294967295\n");
  expect_error(next_incarnation(dir_), ErrorCode::kCorrupt, {"at its end"});
}

TEST_F(IncarnationFile, StaysAsItWasWhenTheDiskFails) {
  write("incarnation", "5\n");
  sync_fails = true;
  expect_error(next_incarnation(dir_), ErrorCode::kFailed, {"incarnation", "Input/output error"});
  EXPECT_EQ(content("incarnation"), "5\n");
  sync_fails = false;
  EXPECT_EQ(*next_incarnation(dir_), 6ULL << 32);
}

TEST_F(Lock, MakesTheDirectoryForTheOwnerOnly) {
  const std::string nested = dir_ + "/deep/er/";
  const auto lock = DataDirLock::acquire(nested);
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_EQ(mode_of(nested), 0700U);
}

TEST_F(Lock, HeldTwiceInOneProcessIsRefused) {
  const auto lock = DataDirLock::acquire(dir_);
  ASSERT_TRUE(lock);
  expect_error(DataDirLock::acquire(dir_), ErrorCode::kDataDirInUse,
               {dir_, "process " + std::to_string(::getpid())});
}

TEST_F(Lock, IsFreeAgainWhenItsHolderIsGone) {
  { const auto lock = DataDirLock::acquire(dir_); }
  EXPECT_TRUE(DataDirLock::acquire(dir_));
}

TEST_F(Lock, MovesWithItsObject) {
  auto lock = DataDirLock::acquire(dir_);
  ASSERT_TRUE(lock);
  const DataDirLock moved = std::move(*lock);
  EXPECT_FALSE(DataDirLock::acquire(dir_));
}

// A child that holds the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& dir) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    child_ = ::fork();
    if (child_ == 0) hold(dir, ends[1]);
    char ready = 0;
    EXPECT_EQ(::read(ends[0], &ready, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Holder() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  pid_t pid() const { return child_; }

 private:
  [[noreturn]] static void hold(const std::string& dir, int ready) {
    const auto lock = DataDirLock::acquire(dir);
    const char byte = lock ? 'y' : 'n';
    if (::write(ready, &byte, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  pid_t child_;
};

TEST_F(Lock, HeldByAnotherProcessIsRefusedNamingItUntilThatIsKilled) {
  {
    const Holder holder(dir_);
    expect_error(DataDirLock::acquire(dir_), ErrorCode::kDataDirInUse,
                 {dir_, "process " + std::to_string(holder.pid()), "--data-dir"});
    EXPECT_EQ(exit_code(ErrorCode::kDataDirInUse), 7);
  }
  EXPECT_TRUE(DataDirLock::acquire(dir_));  // SIGKILL leaves the file, not the lock
}

TEST_F(Lock, OnSomethingThatIsNoDirectoryIsRefused) {
  write("file", "x");
  expect_error(DataDirLock::acquire(file("file")), ErrorCode::kUsage,
               {file("file"), "not a directory"});
  expect_error(DataDirLock::acquire(file("file") + "/below"), ErrorCode::kUsage, {"below"});
  expect_error(DataDirLock::acquire(""), ErrorCode::kUsage, {"empty"});
}

}  // namespace
}  // namespace kith::node
