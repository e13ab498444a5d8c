#include "node/config_keys.h"

#include <algorithm>

#include "node/config_value.h"

namespace kith::node {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr KeyRange kPositive{0, kInf, true, false};
constexpr KeyRange kNotNegative{0, kInf};
constexpr KeyRange kFraction{0, 1, false, true};
constexpr KeyRange kUnitAboveZero{0, 1, true, false};

#define KITH_SLOT(member) [](Config& c) -> KeySlot { return &c.member; }

const KeyInfo kKeys[] = {
    {.name = "cluster.name",
     .slot = KITH_SLOT(cluster.name),
     .help = "nodes of another name never talk",
     .form = KeyForm::kName},
    {.name = "cluster.join",
     .slot = KITH_SLOT(cluster.join),
     .help = "seeds, host:port each (port 7400 when left out); a list or text with commas",
     .form = KeyForm::kSeeds},
    {.name = "cluster.key_file",
     .slot = KITH_SLOT(cluster.key_file),
     .help = "file made by `kith keygen`; without a key only loopback addresses may be bound",
     .form = KeyForm::kPath},
    {.name = "cluster.preset",
     .slot = KITH_SLOT(cluster.preset),
     .help = "all timeouts derive from it: probes every 0.2 s | 1 s | 5 s",
     .choices = "local|lan|wan"},
    {.name = "cluster.forget_after",
     .slot = KITH_SLOT(cluster.forget_after),
     .help = "dead and left members leave the list after this; 0s: from the preset (5 h | 24 h | 5 "
             "days)",
     .range = {0, 1e7}},
    {.name = "cluster.partial_view_above",
     .slot = KITH_SLOT(cluster.partial_view_above),
     .help =
         "with more live members than this a node keeps links with a few of them only (HyParView)",
     .range = {8, 20000}},

    {.name = "node.name",
     .slot = KITH_SLOT(node.name),
     .help = "name of this node for people; default: the host's name",
     .form = KeyForm::kName},
    {.name = "node.listen",
     .slot = KITH_SLOT(node.listen),
     .help = "address of the control plane; the bulk plane takes the next port",
     .form = KeyForm::kListen},
    {.name = "node.listen_bulk",
     .slot = KITH_SLOT(node.listen_bulk),
     .help = "address of the bulk plane, when it is not the next port",
     .form = KeyForm::kListen},
    {.name = "node.advertise",
     .slot = KITH_SLOT(node.advertise),
     .help = "host or host:port told to others, when it differs from listen",
     .form = KeyForm::kAdvertise},
    {.name = "node.http",
     .slot = KITH_SLOT(node.http),
     .help = "address of metrics, health and status; port 0 = any, written to data_dir/http",
     .form = KeyForm::kListen},
    {.name = "node.data_dir",
     .slot = KITH_SLOT(node.data_dir),
     .help = "identity, checkpoints and the final model; auto:PARENT takes a free one in PARENT; "
             "default: kith-data/<node.name>",
     .form = KeyForm::kPath},

    {.name = "run.id",
     .slot = KITH_SLOT(run.id),
     .help = "nodes of another run never exchange",
     .form = KeyForm::kName},
    {.name = "run.seed",
     .slot = KITH_SLOT(run.seed),
     .help = "same seed, same initial model everywhere",
     .range = kNotNegative},
    {.name = "run.epochs",
     .slot = KITH_SLOT(run.epochs),
     .help = "passes over the cluster's data, counted over all nodes; 0: train until stopped",
     .range = {0, 1e9}},
    {.name = "run.steps",
     .slot = KITH_SLOT(run.steps),
     .help = "length in optimiser steps of all nodes together, instead of epochs; 0: not set",
     .range = kNotNegative,
     .unit = "steps"},
    {.name = "run.start_members",
     .slot = KITH_SLOT(run.start_members),
     .help = "hold the first step until so many members are there",
     .range = {1, 100000}},
    {.name = "run.start_timeout",
     .slot = KITH_SLOT(run.start_timeout),
     .help = "... or until this has passed; 0s: wait for ever",
     .range = {0, 1e7}},

    {.name = "model.kind", .slot = KITH_SLOT(model.kind), .help = "one of `kith models`"},
    {.name = "model.channels",
     .slot = KITH_SLOT(model.channels),
     .help = "cnn: channels of each block of convolution, ReLU and pooling",
     .range = {1, 65536}},
    {.name = "model.hidden",
     .slot = KITH_SLOT(model.hidden),
     .help = "cnn, mlp: widths of the dense layers before the classifier",
     .range = {1, 1048576}},

    {.name = "data.format",
     .slot = KITH_SLOT(data.format),
     .help = "idx (also .gz), csv (label last) or npy",
     .choices = "idx|csv|npy"},
    {.name = "data.train",
     .slot = KITH_SLOT(data.train),
     .help = "training files: inputs and labels (idx, npy) or one file (csv)",
     .form = KeyForm::kPath},
    {.name = "data.test",
     .slot = KITH_SLOT(data.test),
     .help = "test files, the same way; may be left out",
     .form = KeyForm::kPath},
    {.name = "data.classes",
     .slot = KITH_SLOT(data.classes),
     .help = "number of classes; default: from the whole training file, or from the cluster",
     .range = {2, 1048576}},
    {.name = "data.mean",
     .slot = KITH_SLOT(data.mean),
     .help = "inputs become (x - mean) / std; default: from the whole training file"},
    {.name = "data.std", .slot = KITH_SLOT(data.std), .help = "see data.mean", .range = kPositive},
    {.name = "data.shard",
     .slot = KITH_SLOT(data.shard),
     .help = "auto: shared out among nodes that have the same data; all; or \"2/4\"",
     .form = KeyForm::kShard},
    {.name = "data.shard_by",
     .slot = KITH_SLOT(data.shard_by),
     .help = "label gives each node only some classes, to show what averaging does",
     .choices = "index|label"},

    {.name = "train.optimizer",
     .slot = KITH_SLOT(train.optimizer),
     .help = "the local update",
     .choices = "sgd|adam|adamw"},
    {.name = "train.learning_rate",
     .slot = KITH_SLOT(train.learning_rate),
     .help = "after warm-up, before the schedule",
     .range = {0, 1000, true, false}},
    {.name = "train.momentum",
     .slot = KITH_SLOT(train.momentum),
     .help = "sgd: 0 = off",
     .range = kFraction},
    {.name = "train.nesterov",
     .slot = KITH_SLOT(train.nesterov),
     .help = "sgd with momentum: look ahead"},
    {.name = "train.beta1",
     .slot = KITH_SLOT(train.beta1),
     .help = "adam, adamw: decay of the first moment",
     .range = kFraction},
    {.name = "train.beta2",
     .slot = KITH_SLOT(train.beta2),
     .help = "adam, adamw: decay of the second moment",
     .range = kFraction},
    {.name = "train.eps",
     .slot = KITH_SLOT(train.eps),
     .help = "adam, adamw: added to the divisor",
     .range = kUnitAboveZero},
    {.name = "train.weight_decay",
     .slot = KITH_SLOT(train.weight_decay),
     .help = "L2 for sgd and adam, decoupled for adamw; 0 = off",
     .range = {0, 1000}},
    {.name = "train.clip_norm",
     .slot = KITH_SLOT(train.clip_norm),
     .help = "largest 2-norm of the whole gradient; 0 = off",
     .range = kNotNegative},
    {.name = "train.schedule",
     .slot = KITH_SLOT(train.schedule),
     .help = "learning rate over the cluster's progress",
     .choices = "constant|step|cosine"},
    {.name = "train.warmup_steps",
     .slot = KITH_SLOT(train.warmup_steps),
     .help = "rises from 0 over so many steps of all nodes together",
     .range = kNotNegative,
     .unit = "steps"},
    {.name = "train.step_every",
     .slot = KITH_SLOT(train.step_every),
     .help = "schedule step: times gamma every so many steps of all nodes together",
     .range = kNotNegative,
     .unit = "steps"},
    {.name = "train.gamma",
     .slot = KITH_SLOT(train.gamma),
     .help = "schedule step: the factor",
     .range = kUnitAboveZero},
    {.name = "train.floor",
     .slot = KITH_SLOT(train.floor),
     .help = "schedule cosine: learning rate at the end",
     .range = kNotNegative},
    {.name = "train.batch_size",
     .slot = KITH_SLOT(train.batch_size),
     .help = "samples of one step",
     .range = {1, 1048576},
     .unit = "samples"},
    {.name = "train.threads",
     .slot = KITH_SLOT(train.threads),
     .help = "compute threads of the trainer",
     .range = {1, 1024}},
    {.name = "train.device",
     .slot = KITH_SLOT(train.device),
     .help = "auto | cpu | cuda:0",
     .form = KeyForm::kDevice},
    {.name = "train.min_step_ms",
     .slot = KITH_SLOT(train.min_step_ms),
     .help = "shortest time a step may take: shares a machine politely",
     .range = {0, 3.6e6},
     .unit = "ms"},

    {.name = "method.name", .slot = KITH_SLOT(method.name), .help = "one of `kith methods`"},
    {.name = "method.topology",
     .slot = KITH_SLOT(method.topology),
     .help = "with whom, instead of the method's own: one of `kith topologies`"},
    {.name = "method.codec",
     .slot = KITH_SLOT(method.codec),
     .help = "how values travel, instead of the method's own: one of `kith codecs`"},
    {.name = "method.alpha",
     .slot = KITH_SLOT(method.alpha),
     .help = "mixing weight of a pair, above 0 up to 0.5"},
    {.name = "method.every_steps",
     .slot = KITH_SLOT(method.every_steps),
     .help = "start an exchange every so many own steps",
     .range = {1, kInf},
     .unit = "steps"},
    {.name = "method.wait", .slot = KITH_SLOT(method.wait), .help = "whom a step waits for: never"},
    {.name = "method.finish",
     .slot = KITH_SLOT(method.finish),
     .help = "consensus (one final model) or none (each its own)"},

    {.name = "exchange.fragment_bytes",
     .slot = KITH_SLOT(exchange.fragment_bytes),
     .help = "unit of exchange, locking and retry; a multiple of 4",
     .range = {4, 1073741824},
     .unit = "bytes"},
    {.name = "exchange.chunk_bytes",
     .slot = KITH_SLOT(exchange.chunk_bytes),
     .help = "largest payload of one message; a multiple of 4, at most a fragment",
     .range = {4, 1048576},
     .unit = "bytes"},
    {.name = "exchange.max_lag",
     .slot = KITH_SLOT(exchange.max_lag),
     .help = "further behind than this share of the run (or so many steps): adopt, not average",
     .form = KeyForm::kLag},

    {.name = "checkpoint.every_seconds",
     .slot = KITH_SLOT(checkpoint.every_seconds),
     .help = "time between checkpoints; 0: only when leaving and at the end",
     .range = {0, 1e7},
     .unit = "s"},
    {.name = "checkpoint.keep",
     .slot = KITH_SLOT(checkpoint.keep),
     .help = "how many of the newest stay",
     .range = {1, 100000}},

    {.name = "log.format",
     .slot = KITH_SLOT(log.format),
     .help = "lines on stderr",
     .choices = "text|logfmt|json"},
    {.name = "log.level",
     .slot = KITH_SLOT(log.level),
     .help = "least important line that is shown",
     .choices = "trace|debug|info|warn|error"},
    {.name = "log.steps",
     .slot = KITH_SLOT(log.steps),
     .help =
         "file for one line of JSON per step, in data_dir unless it begins with /; empty: none"},
};
#undef KITH_SLOT

std::string bounds_text(const KeyRange& range) {
  const bool low = range.low > -kInf;
  const bool high = range.high < kInf;
  std::string text;
  if (low && (range.low_excluded || high))
    text += (range.low_excluded ? " above " : " from ") + number_text(range.low);
  else if (low)
    text += " of at least " + number_text(range.low);
  if (high) {
    text += (range.low_excluded ? " up to " : low ? " to " : " up to ") + number_text(range.high);
    if (range.high_excluded) text += " (excluded)";
  }
  return text;
}

struct ExpectedText {
  const KeyInfo& key;
  template <typename T>
  std::string operator()(const T*) const {
    const std::string bounds = bounds_text(key.range);
    if constexpr (std::is_same_v<T, bool>)
      return "true or false";
    else if constexpr (std::is_same_v<T, Duration>)
      return "a duration in quotes such as \"1.5s\", \"200ms\" or \"2m\"";
    else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>)
      return "a number" + bounds;
    else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
      return "a list of integers" + bounds + " such as [16, 32]";
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      return "a list of texts";
    else if constexpr (std::is_same_v<T, std::string> ||
                       std::is_same_v<T, std::optional<std::string>> || std::is_same_v<T, Preset>)
      return "text in quotes";
    else
      return "an integer" + bounds;
  }
};

struct ValueText {
  std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
  std::string operator()(const double* v) const { return number_text(*v); }
  std::string operator()(const Duration* v) const { return in_quotes(duration_text(*v)); }
  std::string operator()(const Preset* v) const { return in_quotes(v->name); }
  std::string operator()(const std::string* v) const { return in_quotes(*v); }
  std::string operator()(const std::uint32_t* v) const { return std::to_string(*v); }
  std::string operator()(const std::uint64_t* v) const { return std::to_string(*v); }
  std::string operator()(const std::int64_t* v) const { return std::to_string(*v); }
  template <typename T>
  std::string operator()(const std::optional<T>* v) const {
    return v->has_value() ? (*this)(&**v) : "";
  }
  template <typename T>
  std::string operator()(const std::vector<T>* v) const {
    std::string text = "[";
    for (const T& item : *v) text += (text.size() > 1 ? ", " : "") + (*this)(&item);
    return text + "]";
  }
};

// Names that other systems give to the same thing.
struct Synonym {
  std::string_view word, key;
};
constexpr Synonym kSynonyms[] = {
    {"lr", "train.learning_rate"},
    {"lr_rate", "train.learning_rate"},
    {"rate", "train.learning_rate"},
    {"batch", "train.batch_size"},
    {"bs", "train.batch_size"},
    {"wd", "train.weight_decay"},
    {"decay", "train.weight_decay"},
    {"warmup", "train.warmup_steps"},
    {"optim", "train.optimizer"},
    {"optimiser", "train.optimizer"},
    {"seeds", "cluster.join"},
    {"peers", "cluster.join"},
    {"key", "cluster.key_file"},
    {"model", "model.kind"},
    {"type", "model.kind"},
    {"layers", "model.hidden"},
    {"address", "node.listen"},
    {"bind", "node.listen"},
    {"dir", "node.data_dir"},
    {"metrics", "node.http"},
    {"fragment_size", "exchange.fragment_bytes"},
    {"chunk_size", "exchange.chunk_bytes"},
    {"interval", "checkpoint.every_seconds"},
    {"max_steps", "run.steps"},
    {"num_epochs", "run.epochs"},
    {"gpu", "train.device"},
};

std::string_view last_part(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

}  // namespace

std::span<const KeyInfo> config_keys() { return kKeys; }

const KeyInfo* find_key(std::string_view name) {
  const auto found = std::ranges::find(kKeys, name, &KeyInfo::name);
  return found == std::end(kKeys) ? nullptr : &*found;
}

std::string environment_name(std::string_view key) {
  std::string name = "KITH_";
  for (const char c : key)
    name += c == '.' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::string expected_of(const KeyInfo& key) {
  if (!key.choices.empty()) return "one of " + spaced_choices(key.choices);
  switch (key.form) {
    case KeyForm::kSeeds:
      return "host:port addresses, as a list or as text with commas";
    case KeyForm::kListen:
      return "an address host:port or [IPv6]:port";
    case KeyForm::kAdvertise:
      return "host or host:port, or empty";
    case KeyForm::kLag:
      return "a share of the run such as \"10%\", or a number of steps";
    case KeyForm::kShard:
      return "\"auto\", \"all\" or \"k/n\" with 1 <= k <= n";
    case KeyForm::kDevice:
      return "\"auto\", \"cpu\" or \"cuda:N\"";
    case KeyForm::kName:
      return "a name of 1 to 64 bytes without blanks or '/'";
    default:
      break;
  }
  Config scratch;
  return std::visit(ExpectedText{key}, key.slot(scratch));
}

std::string value_text(const KeyInfo& key, const Config& config) {
  // slot() only forms a pointer; nothing is written through it here.
  return std::visit(ValueText{}, key.slot(const_cast<Config&>(config)));
}

std::string nearest_key(std::string_view unknown) {
  const std::string_view word = last_part(unknown);
  for (const KeyInfo& key : kKeys)
    if (last_part(key.name) == word) return std::string(key.name);
  for (const Synonym& s : kSynonyms)
    if (s.word == word || s.word == unknown) return std::string(s.key);
  std::vector<std::string_view> names;
  for (const KeyInfo& key : kKeys) names.push_back(key.name);
  if (unknown.find('.') != std::string_view::npos) return std::string(nearest(unknown, names));
  std::vector<std::string_view> words;
  for (const KeyInfo& key : kKeys) words.push_back(last_part(key.name));
  const std::string_view hit = nearest(unknown, words);
  for (const KeyInfo& key : kKeys)
    if (!hit.empty() && last_part(key.name) == hit) return std::string(key.name);
  return "";
}

std::string describe_keys() {
  const Config defaults;
  std::string text;
  for (const KeyInfo& key : kKeys) {
    const std::string value = value_text(key, defaults);
    std::string line = "  " + std::string(key.name);
    line.resize(std::max<std::size_t>(line.size() + 1, 28), ' ');
    line += value.empty() ? "(not set)" : value;
    line.resize(std::max<std::size_t>(line.size() + 1, 50), ' ');
    line += std::string(key.help);
    if (!key.unit.empty()) line += " [" + std::string(key.unit) + "]";
    if (!key.choices.empty()) line += ": " + spaced_choices(key.choices);
    text += line + "\n";
  }
  return text;
}

}  // namespace kith::node
