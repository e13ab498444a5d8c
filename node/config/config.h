// Configuration: one TOML file for all nodes; flag > environment (KITH_<TABLE>_<KEY>) > file >
// default. Every value knows where it came from. Unknown keys, wrong types and values out of range
// are kUsage with file, line, key, what was expected and the nearest known key. Keys are described
// once, in one table (config_keys.cc), which also makes `config show`, the documentation and the
// checks. Thread: load on one, read anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace kith::node {

struct Preset {  // all timeouts derive from these (interface.md)
  std::string name = "local";
  Duration probe_interval{};  // local 0.2 s | lan 1 s | wan 5 s
  Duration grace{};           // before starting alone: 2 s | 10 s | 30 s
  Duration seed_retry{};      // 1 s | 5 s | 15 s, rising
};

struct Config {
  struct Cluster {
    std::string name = "kith";
    std::vector<std::string> join;
    std::string key_file;
    Preset preset;
    Duration forget_after{0};  // 0: from the preset
    std::uint32_t partial_view_above = 512;
  } cluster;
  struct Node {
    std::string name, listen = "127.0.0.1:7400", listen_bulk, advertise, http = "127.0.0.1:7480",
                      data_dir;
  } node;
  struct Run {
    std::string id = "run";
    std::uint64_t seed = 0;
    double epochs = 0;
    std::uint64_t steps = 0;
    std::uint32_t start_members = 1;
    Duration start_timeout{0};
  } run;
  struct Model {
    std::string kind = "cnn";
    std::vector<std::int64_t> channels{16, 32}, hidden{64};
  } model;
  struct Data {
    std::string format = "idx";
    std::vector<std::string> train, test;
    std::optional<std::int64_t> classes;
    std::optional<double> mean, std;
    std::string shard = "auto", shard_by = "index";
  } data;
  struct Train {
    std::string optimizer = "sgd";
    double learning_rate = 0.05, momentum = 0.0;
    bool nesterov = false;
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0, clip_norm = 0.0;
    std::string schedule = "constant";
    std::uint64_t warmup_steps = 0, step_every = 0;
    double gamma = 0.1, floor = 0.0;
    std::uint32_t batch_size = 32, threads = 1;
    std::string device = "auto";
    double min_step_ms = 0.0;
  } train;
  struct Method {
    std::string name = "ad-psgd";
    std::optional<std::string> topology, codec, wait, finish;
    std::optional<double> alpha;
    std::optional<std::uint64_t> every_steps;
  } method;
  struct Exchange {
    std::uint64_t fragment_bytes = 4194304, chunk_bytes = 1048576;
    std::string max_lag = "10%";
  } exchange;
  struct Checkpoint {
    double every_seconds = 30;
    std::uint32_t keep = 3;
    Duration final_timeout = std::chrono::hours(1);
  } checkpoint;
  struct Log {
    std::string format = "text", level = "info", steps;
  } log;

  // Not in the file: flags only.
  bool standalone = false, bootstrap = false, insecure = false, check_only = false;
  Duration join_timeout{0};  // 0: for ever; else exit 4
  std::string file;  // where it came from, "" if none; relative paths in the file are relative to
                     // its folder

  std::map<std::string, std::string>
      origin;  // "train.momentum" -> "file run.toml:12" | "flag" | "environment KITH_…" | "default"
  std::vector<std::string> notes;  // "train.momentum does not apply to adam: ignored"
};

struct Flag {
  std::string key, value;
};  // "node.listen", as given; later ones win
// `environment`: NAME=value pairs to look at (so that tests bring their own).
Result<Config> load_config(const std::string& file, const std::vector<Flag>& flags,
                           const std::map<std::string, std::string>& environment);
// Table or JSON of every effective value with its origin; secrets redacted.
std::string show_config(const Config& config, bool json);

}  // namespace kith::node
