#include "tests/faults/oracles.h"

#include <gtest/gtest.h>
#include <sodium.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/log.h"
#include "node/store/checkpoint.h"
#include "node/store/safetensors.h"

namespace kith::e2e {

namespace fs = std::filesystem;

namespace {

constexpr double kResidentMibMax = 256.0;
constexpr std::size_t kOpenFilesMax = 256;
constexpr double kCoresMax = 0.75;
constexpr std::size_t kFragments =
    (kValueCount * sizeof(float) + kFragmentBytes - 1) / kFragmentBytes;

// Sizes only: what decoding a ledger needs to know.
class Layout final : public gossip::FragmentStore {
 public:
  [[nodiscard]] std::uint32_t fragment_count() const override { return kFragments; }
  [[nodiscard]] std::size_t payload_bytes(FragmentIndex fragment,
                                          CodecId /*codec*/) const override {
    const std::size_t begin = fragment * kFragmentBytes;
    return std::min(kFragmentBytes, kValueCount * sizeof(float) - begin);
  }
  Result<Slice> snapshot(const ExchangeId&, FragmentIndex, CodecId) override {
    return fail("sizes only");
  }
  Result<Committed> commit(const ExchangeId&, FragmentIndex, const Payload&, CodecId,
                           double) override {
    return fail("sizes only");
  }
  Status apply(const ExchangeId&, FragmentIndex, const Payload&, CodecId) override {
    return fail("sizes only");
  }
};

std::vector<float> floats_of(const node::SafetensorsFile& file) {
  std::vector<float> values;
  for (const auto& tensor : file.tensors()) {
    if (tensor.dtype != "F32") continue;
    const auto bytes = file.bytes(tensor.name);
    const std::size_t begin = values.size();
    values.resize(begin + bytes->size() / sizeof(float));
    std::memcpy(values.data() + begin, bytes->data(), bytes->size());
  }
  return values;
}

Result<std::vector<float>> read_values(const std::string& path) {
  KITH_ASSIGN(const auto file, node::SafetensorsFile::open(path));
  KITH_TRY(file.verify_content());
  return floats_of(file);
}

Result<Saved> read_checkpoint(const std::string& path) {
  Saved saved;
  saved.path = path;
  KITH_ASSIGN(saved.values, read_values(path));
  KITH_ASSIGN(const auto file, node::SafetensorsFile::open(path));
  KITH_ASSIGN(const auto ledger, file.bytes("kith.ledger"));
  // A node that ran alone has none.
  if (!ledger.empty()) {
    KITH_ASSIGN(saved.ledger, gossip::decode_image(ledger, Layout()));
  }
  return saved;
}

bool is_open(const std::vector<Saved>& all, const ExchangeId& e) {
  for (const Saved& saved : all)
    for (const auto& open : saved.ledger.open)
      if (open.e == e) return true;
  return false;
}

std::vector<double> mass_of(const std::vector<Saved>& all) {
  std::vector<double> sum(kValueCount, 0.0);
  for (const Saved& saved : all) {
    for (std::size_t i = 0; i < kValueCount; ++i) sum[i] += saved.values.at(i);
    // Committed here, not yet applied by its initiator: that delta is still on its way.
    for (const auto& entry : saved.ledger.entries) {
      if (!is_open(all, entry.result.e)) continue;
      std::vector<float> delta(entry.delta.size() / sizeof(float));
      std::memcpy(delta.data(), entry.delta.data(), entry.delta.size());
      const std::size_t begin = entry.result.fragment * kFragmentBytes / sizeof(float);
      for (std::size_t i = 0; i < delta.size(); ++i) sum[begin + i] += delta[i];
    }
  }
  return sum;
}

double cpu_seconds_of(pid_t pid) {
  const std::string stat = bytes_of("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0.0;
  std::stringstream fields(stat.substr(name_end + 2));
  std::string skip;
  for (int i = 0; i < 11; ++i) fields >> skip;  // state to cmajflt
  double user = 0.0, system = 0.0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string z85(const std::vector<unsigned char>& bytes) {
  static const char kDigits[] =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  std::string out;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t word = 0;
    for (std::size_t b = 0; b < 4; ++b) word = word * 256 + bytes[i + b];
    std::string five(5, '0');
    for (std::size_t d = 5; d-- > 0; word /= 85) five[d] = kDigits[word % 85];
    out += five;
  }
  return out;
}

// All spellings in which a key could slip into a log.
std::map<std::string, std::string> spellings_of(const std::string& hex) {
  if (hex.size() != 64) return {};
  std::vector<unsigned char> bytes(hex.size() / 2);
  if (::sodium_hex2bin(bytes.data(), bytes.size(), hex.data(), hex.size(), nullptr, nullptr,
                       nullptr) != 0)
    return {};
  std::string upper = hex, base64(sodium_base64_ENCODED_LEN(
                                      bytes.size(), sodium_base64_VARIANT_ORIGINAL_NO_PADDING),
                                  '\0');
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  ::sodium_bin2base64(base64.data(), base64.size(), bytes.data(), bytes.size(),
                      sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
  // Half is enough to be a leak, and the last base64 digit depends on what follows.
  return {{"hexadecimal", hex.substr(0, 32)},
          {"hexadecimal capitals", upper.substr(0, 32)},
          {"base64", base64.substr(0, 20)},
          {"Z85", z85(bytes).substr(0, 20)},
          {"raw bytes", std::string(bytes.begin(), bytes.begin() + 16)}};
}

}  // namespace

std::map<std::string, std::string> view_of(const Node& observer) {
  std::map<std::string, std::string> view;
  const auto reply = observer.get("/members");
  if (!reply.is_object() || !reply.contains("members")) return view;
  for (const auto& member : reply["members"]) view[member["name"]] = member["state"];
  return view;
}

bool views_agree(Cluster& cluster, const Indices& healthy) {
  Indices others;
  for (std::size_t i = 0; i < cluster.size(); ++i)
    if (!healthy.contains(i)) others.insert(i);
  for (const std::size_t observer : healthy) {
    const auto view = view_of(cluster[observer]);
    for (const std::size_t i : healthy)
      if (const auto seen = view.find(cluster[i].name());
          seen == view.end() || seen->second != "alive")
        return false;
    for (const std::size_t i : others)
      if (const auto seen = view.find(cluster[i].name());
          seen != view.end() && seen->second != "dead" && seen->second != "left")
        return false;
  }
  return true;
}

double steps_of(const Node& node) { return node.metric("kith_train_steps_total"); }

double exchanges_of(const Node& node) {
  const auto status = node.get("/status");
  return status.is_object() ? status.value("exchanges_total", 0.0) : 0.0;
}

Usage usage_of(pid_t pid) {
  Usage usage;
  const std::string folder = "/proc/" + std::to_string(pid);
  std::stringstream lines(bytes_of(folder + "/status"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("VmRSS:"))
      usage.resident_mib = std::strtod(line.c_str() + 6, nullptr) / 1024.0;
  std::error_code gone;
  for (fs::directory_iterator it(folder + "/fd", gone), end; !gone && it != end; it.increment(gone))
    ++usage.open_files;
  usage.cpu_seconds = cpu_seconds_of(pid);
  return usage;
}

std::optional<Saved> newest_checkpoint(const std::string& data_dir) {
  NullLog quiet;
  const auto files = node::CheckpointStore(data_dir + "/checkpoints", 1, quiet).files();
  if (files.empty()) {
    ADD_FAILURE() << "no checkpoint in " << data_dir;
    return std::nullopt;
  }
  auto saved = read_checkpoint(files.front());
  if (!saved) {
    ADD_FAILURE() << files.front() << ": " << saved.error().message;
    return std::nullopt;
  }
  return *saved;
}

double mass_error(const std::vector<Saved>& before, const std::vector<Saved>& after) {
  const auto old_sum = mass_of(before), new_sum = mass_of(after);
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < kValueCount; ++i) {
    difference += (new_sum[i] - old_sum[i]) * (new_sum[i] - old_sum[i]);
    size += old_sum[i] * old_sum[i];
  }
  return std::sqrt(difference / size);
}

void expect_checkpoints_intact(Cluster& cluster, const Indices& healthy) {
  for (const std::size_t i : healthy) {
    Finished run;
    wait_until(seconds(10), [&] {  // one may be under way
      run = run_program({kith_path(), "checkpoint", "now", "--at", cluster[i].folder() + "/data"},
                        seconds(30));
      return run.output.find("try again") == std::string::npos;
    });
    EXPECT_EQ(run.exit.code, 0) << "O3: " << cluster[i].name()
                                << " writes no checkpoint: " << run.output;
    const auto words = run.output.find("written ");
    if (words == std::string::npos) continue;
    std::string path = run.output.substr(words + 8);
    path = path.substr(0, path.find('\n'));
    const auto values = read_values(path);
    EXPECT_TRUE(values) << "O3: " << (values ? "" : values.error().message);
    if (!values) continue;
    EXPECT_TRUE(
        std::all_of(values->begin(), values->end(), [](float v) { return std::isfinite(v); }))
        << "O3: " << path << " holds values that are not finite";
  }
}

void expect_caps_kept(Cluster& cluster, const Indices& healthy) {
  std::map<std::size_t, Usage> before;
  for (const std::size_t i : healthy) before[i] = usage_of(cluster[i].pid());
  const auto start = std::chrono::steady_clock::now();
  wait_until(seconds(2), [] { return false; });
  const double span =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const std::size_t i : healthy) {
    const Usage now = usage_of(cluster[i].pid());
    const double cores = (now.cpu_seconds - before[i].cpu_seconds) / span;
    EXPECT_LT(now.resident_mib, kResidentMibMax) << "O5: memory of " << cluster[i].name();
    EXPECT_LT(now.open_files, kOpenFilesMax) << "O5: open files of " << cluster[i].name();
    EXPECT_LT(cores, kCoresMax) << "O5: CPU of " << cluster[i].name();
  }
}

void expect_documented_exit(const Node& node, const Exit& exit) {
  static const std::set<int> kDocumented = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10};
  EXPECT_EQ(exit.signal, 0) << "O7: " << node.name() << " died of a signal\n" << node.log();
  EXPECT_TRUE(exit.signal != 0 || kDocumented.contains(exit.code))
      << "O7: " << node.name() << " ended with " << exit.code;
}

void expect_no_secret_logged(const std::string& folder, const std::vector<std::string>& secrets) {
  std::map<std::string, std::string> texts;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (const auto name = entry.path().filename();
        entry.is_regular_file() && (name == "log" || name == "out"))
      texts[entry.path()] = bytes_of(entry.path());
  EXPECT_FALSE(texts.empty()) << "O7: no log to look into";
  for (const auto& file : secrets) {
    if (!fs::exists(file)) continue;  // of a node that ended before it had one
    const auto spellings = spellings_of(bytes_of(file).substr(0, 64));
    EXPECT_FALSE(spellings.empty()) << "O7: " << file << " is no key";
    for (const auto& [how, text] : spellings)
      for (const auto& [log, content] : texts)
        EXPECT_EQ(content.find(text), std::string::npos)
            << "O7: " << log << " shows the key of " << file << " in " << how;
  }
}

}  // namespace kith::e2e
