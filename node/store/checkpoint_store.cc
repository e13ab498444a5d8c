#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/check.h"
#include "node/store/checkpoint.h"
#include "node/store/checkpoint_metadata.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::size_t kDigits = 12;

std::string file_name(Step step) {
  const std::string digits = std::to_string(step);
  const std::size_t zeros = digits.size() < kDigits ? kDigits - digits.size() : 0;
  return std::string(kPrefix) + std::string(zeros, '0') + digits + std::string(kSuffix);
}

std::optional<Step> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  if (name.size() <= kPrefix.size() + kSuffix.size()) return std::nullopt;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size() - kSuffix.size();
  Step step = 0;
  const auto parsed = std::from_chars(begin, end, step);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return step;
}

struct StepFile {
  Step step = 0;
  std::string path;
};

// Highest step first: as numbers, since as text 9000 would come after 10000. `error`: the folder is
// there and cannot be read, which must not look like an empty one.
std::vector<StepFile> list_files(const std::string& folder, std::error_code& error) {
  std::vector<StepFile> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (const auto step = step_of(it->path().filename().string()))
      found.push_back({*step, it->path().string()});
  std::ranges::sort(found, [](const StepFile& a, const StepFile& b) {
    return std::pair(a.step, a.path) > std::pair(b.step, b.path);
  });
  if (error == std::errc::no_such_file_or_directory) error.clear();
  return found;
}

// What a killed writer left behind.
void remove_temporaries(const std::string& folder) {
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().find(std::string(kSuffix) + ".tmp-") != std::string::npos)
      stale.push_back(it->path());
  for (const fs::path& path : stale) fs::remove(path, error);
}

Result<LoadedCheckpoint> read_file(const std::string& path, const compute::ModelSchema& schema,
                                   const Hash256& schema_hash, const std::string& run_id) {
  KITH_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(path));
  KITH_TRY(file.verify_content());
  LoadedCheckpoint loaded;
  loaded.path = path;
  compute::TrainerImage own;
  KITH_TRY(read_checkpoint_metadata(file.metadata(), loaded.facts, own));
  if (loaded.facts.run_id != run_id)
    return fail(ErrorCode::kIncompatible,
                "belongs to run '" + loaded.facts.run_id + "' and this is run '" + run_id + "'");
  if (loaded.facts.schema_hash != schema_hash)
    return fail(ErrorCode::kIncompatible, "holds a model with schema " +
                                              loaded.facts.schema_hash.hex().substr(0, 16) +
                                              " and the configuration makes one with schema " +
                                              schema_hash.hex().substr(0, 16));
  KITH_TRY(match_schema(file, schema));
  KITH_ASSIGN(loaded.state.values, read_values(file, schema));
  KITH_ASSIGN(loaded.state.integers, read_integers(file, schema));
  KITH_ASSIGN(const auto optimizer, file.bytes(kOptimizerTensor));
  loaded.state.optimizer.assign(optimizer.begin(), optimizer.end());
  KITH_ASSIGN(const auto ledger, file.bytes(kLedgerTensor));
  loaded.ledger.bytes.assign(ledger.begin(), ledger.end());
  loaded.state.own = own;
  return loaded;
}

std::string with_path(const std::string& path, const std::string& message) {
  return message.find(path) != std::string::npos ? message : path + ": " + message;
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, unsigned keep, LogSink& log)
    : folder_(std::move(folder)), keep_(keep), log_(log) {
  KITH_CHECK(keep_ >= 1, "the newest checkpoint is always kept");
}

std::vector<std::string> CheckpointStore::files() const {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (StepFile& file : list_files(folder_, ignored)) paths.push_back(std::move(file.path));
  return paths;
}

Result<std::string> CheckpointStore::write(const compute::ModelSchema& schema,
                                           compute::Replica& replica,
                                           const compute::TrainerImage& image,
                                           const gossip::LedgerImage& ledger,
                                           const CheckpointFacts& facts,
                                           const std::function<void()>& after_read) {
  KITH_CHECK(image.integers.size() == schema.integer_count, "the image holds every integer buffer");
  auto begun = begin_file(schema, image, ledger, facts);
  const Status streamed = begun ? append_values(begun->writer, replica) : Status{};
  if (after_read) after_read();
  if (!begun) return fail(std::move(begun.error()));
  KITH_TRY(streamed);
  auto& [path, writer] = *begun;
  KITH_TRY(writer.append(std::as_bytes(std::span(image.integers))));
  KITH_TRY(writer.append(image.optimizer));
  KITH_TRY(writer.append(ledger.bytes));
  KITH_TRY(writer.commit());
  prune(path);
  return path;
}

Result<CheckpointStore::Begun> CheckpointStore::begin_file(const compute::ModelSchema& schema,
                                                           const compute::TrainerImage& image,
                                                           const gossip::LedgerImage& ledger,
                                                           const CheckpointFacts& facts) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return fail("cannot make the folder " + folder_ + ": " + error.message());
  remove_temporaries(folder_);
  std::vector<TensorEntry> entries = model_entries(schema);
  entries.push_back({kOptimizerTensor, "U8", {image.optimizer.size()}});
  entries.push_back({kLedgerTensor, "U8", {ledger.bytes.size()}});
  const std::string path = (fs::path(folder_) / file_name(image.step)).string();
  KITH_ASSIGN(auto writer, SafetensorsWriter::create(path, std::move(entries),
                                                     checkpoint_metadata(facts, image)));
  return Begun{path, std::move(writer)};
}

// Keeps what was just written, whatever its number, and the highest steps beside it.
void CheckpointStore::prune(const std::string& written) {
  unsigned kept = 1;
  std::error_code error;
  for (const StepFile& file : list_files(folder_, error)) {
    if (file.path == written || ++kept <= keep_) continue;
    fs::remove(file.path, error);
    if (error)
      log_.log(LogLevel::kWarn, "checkpoint", "cannot remove an old checkpoint",
               {{"file", file.path}, {"reason", error.message()}});
  }
}

void CheckpointStore::set_aside(const std::string& path) {
  std::error_code error;
  fs::rename(path, path + ".corrupt", error);
}

Result<std::optional<LoadedCheckpoint>> CheckpointStore::load_newest(
    const compute::ModelSchema& schema, const Hash256& schema_hash, const std::string& run_id) {
  remove_temporaries(folder_);
  std::vector<std::string> corrupt;
  std::string reasons;
  std::error_code unreadable;
  const std::vector<StepFile> found = list_files(folder_, unreadable);
  if (unreadable) return fail("cannot read the folder " + folder_ + ": " + unreadable.message());
  for (const StepFile& file : found) {
    auto loaded = read_file(file.path, schema, schema_hash, run_id);
    if (loaded) {
      for (const std::string& path : corrupt) set_aside(path);
      return std::optional(std::move(*loaded));
    }
    const Error& error = loaded.error();
    const std::string reason = with_path(file.path, error.message);
    if (error.code == ErrorCode::kIncompatible)
      return fail(error.code,
                  reason + "; use another data_dir, or the run and model it was made with");
    log_.log(LogLevel::kError, "checkpoint", "checkpoint unusable, trying the one before",
             {{"file", file.path}, {"reason", reason}});
    if (error.code != ErrorCode::kFailed) corrupt.push_back(file.path);
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (reasons.empty()) return std::optional<LoadedCheckpoint>();
  return fail(ErrorCode::kCorrupt, "no checkpoint is usable (" + reasons + "); move " + folder_ +
                                       " away to start from the beginning");
}

}  // namespace kith::node
