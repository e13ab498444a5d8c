#include "node/config/config_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "compute/model.h"
#include "gossip/method.h"
#include "node/config/config_keys.h"
#include "node/config/config_value.h"
#include "node/text/address.h"
#include "schema/messages.h"

namespace kith::node {
namespace {

bool is_set(const Config& config, std::string_view key) {
  const auto found = config.origin.find(std::string(key));
  return found != config.origin.end() && found->second != "default";
}

tl::unexpected<Error> refuse(const Config& config, std::string_view key, const std::string& what) {
  const std::string where = where_of(config, key);
  return fail(ErrorCode::kUsage,
              (where == "default" ? "" : where + ": ") + std::string(key) + ": " + what);
}

Status check_run(const Config& config) {
  if (config.run.epochs > 0 && config.run.steps > 0)
    return refuse(config, "run.steps",
                  "run.epochs is set too (" + where_of(config, "run.epochs") +
                      "); a run has one length: set one of them to 0 or leave it out");
  return {};
}

bool is_cnn(const Config& config) { return config.model.kind.starts_with("cnn"); }

Status check_model(const Config& config) {
  const auto kinds = compute::model_kinds();
  if (std::ranges::find(kinds, config.model.kind, &compute::ModelInfo::kind) == kinds.end()) {
    std::vector<std::string_view> names;
    std::string list;
    for (const auto& k : kinds) {
      names.push_back(k.kind);
      list += (list.empty() ? "" : " | ") + std::string(k.kind);
    }
    const std::string_view near = nearest(config.model.kind, names);
    return refuse(config, "model.kind",
                  "expected one of " + list + ", got " + in_quotes(config.model.kind) +
                      (near.empty() ? "" : "; did you mean " + in_quotes(near) + "?"));
  }
  if (is_cnn(config) && config.model.channels.empty())
    return refuse(config, "model.channels", config.model.kind + " needs at least one block");
  return {};
}

std::string files_of(const Config& config) {
  return config.data.format == "csv" ? "one file" : "two files, inputs and labels";
}

Status check_data(const Config& config) {
  const std::size_t needed = config.data.format == "csv" ? 1 : 2;
  const auto wrong = [&](const std::vector<std::string>& files) {
    return !files.empty() && files.size() != needed;
  };
  const auto blank = [](const std::vector<std::string>& files) {
    return std::ranges::any_of(files, &std::string::empty);
  };
  if (wrong(config.data.train) || blank(config.data.train))
    return refuse(config, "data.train",
                  "format " + config.data.format + " takes " + files_of(config) + ", got " +
                      std::to_string(config.data.train.size()));
  if (wrong(config.data.test) || blank(config.data.test))
    return refuse(config, "data.test",
                  "format " + config.data.format + " takes " + files_of(config) + ", got " +
                      std::to_string(config.data.test.size()));
  if (config.data.shard_by == "label" && config.data.shard == "auto")
    return refuse(config, "data.shard_by",
                  "\"label\" needs data.shard = \"k/n\" (--set data.shard=1/4): with auto every "
                  "share is a mixture of the whole file");
  if (config.data.mean.has_value() != config.data.std.has_value())
    return refuse(config, config.data.mean ? "data.mean" : "data.std",
                  "data.mean and data.std go together: set both or neither");
  return {};
}

bool is_sgd(const Config& config) { return config.train.optimizer == "sgd"; }

Status check_train(const Config& config) {
  const auto& train = config.train;
  if (is_sgd(config) && train.nesterov && train.momentum <= 0)
    return refuse(config, "train.nesterov", "needs train.momentum above 0");
  if (train.schedule == "step" && train.step_every == 0)
    return refuse(config, "train.schedule", "\"step\" needs train.step_every of at least 1");
  if (train.schedule == "cosine" && config.run.epochs <= 0 && config.run.steps == 0)
    return refuse(config, "train.schedule",
                  "\"cosine\" needs a length: set run.epochs or run.steps");
  if (train.schedule == "cosine" && train.floor > train.learning_rate)
    return refuse(config, "train.floor", "is above train.learning_rate");
  return {};
}

// Adds the overrides one by one until the composition fails: that key is to blame.
std::string blamed_key(const Config::Method& m) {
  gossip::MethodOverrides some;
  const auto fails = [&] { return !gossip::compose(m.name, some); };
  if (fails()) return "method.name";
  const auto adds = [&](auto& slot, const auto& value) {
    slot = value;
    return value.has_value() && fails();
  };
  if (adds(some.topology, m.topology)) return "method.topology";
  if (adds(some.codec, m.codec)) return "method.codec";
  if (adds(some.wait, m.wait)) return "method.wait";
  if (adds(some.finish, m.finish)) return "method.finish";
  if (adds(some.alpha, m.alpha)) return "method.alpha";
  return "method.every_steps";
}

Status check_method(const Config& config) {
  const auto& m = config.method;
  const gossip::MethodOverrides overrides{.topology = m.topology,
                                          .codec = m.codec,
                                          .wait = m.wait,
                                          .finish = m.finish,
                                          .alpha = m.alpha,
                                          .every_steps = m.every_steps};
  if (auto composed = gossip::compose(m.name, overrides); !composed)
    return refuse(config, blamed_key(m), composed.error().message);
  return {};
}

Status check_exchange(const Config& config) {
  const auto& x = config.exchange;
  if (x.fragment_bytes % 4 != 0)
    return refuse(config, "exchange.fragment_bytes",
                  std::to_string(x.fragment_bytes) + " is not a multiple of 4 (one fp32 value)");
  if (x.chunk_bytes % 4 != 0)
    return refuse(config, "exchange.chunk_bytes",
                  std::to_string(x.chunk_bytes) + " is not a multiple of 4 (one fp32 value)");
  if (x.chunk_bytes > x.fragment_bytes)
    return refuse(config, "exchange.chunk_bytes",
                  std::to_string(x.chunk_bytes) + " is more than exchange.fragment_bytes (" +
                      std::to_string(x.fragment_bytes) + ")");
  const std::uint64_t chunks = (x.fragment_bytes + x.chunk_bytes - 1) / x.chunk_bytes;
  if (chunks > schema::kChunksPerPayloadMax)
    return refuse(config, "exchange.chunk_bytes",
                  "a fragment would be cut into " + std::to_string(chunks) + " chunks; at most " +
                      std::to_string(schema::kChunksPerPayloadMax) + " are possible");
  return {};
}

Status check_addresses(const Config& config) {
  KITH_ASSIGN(const HostPort listen, parse_address(config.node.listen, PortRule::kMayBeZero));
  KITH_ASSIGN(const HostPort http, parse_address(config.node.http, PortRule::kMayBeZero));
  HostPort bulk = listen;
  if (!config.node.listen_bulk.empty()) {
    KITH_ASSIGN(bulk, parse_address(config.node.listen_bulk, PortRule::kMayBeZero));
  } else if (listen.port == 65535) {
    return refuse(config, "node.listen",
                  "the bulk plane takes the next port and there is none after 65535; set "
                  "node.listen_bulk or listen on a lower port");
  } else if (listen.port != 0) {
    bulk.port = static_cast<std::uint16_t>(listen.port + 1);
  }
  const auto same = [](const HostPort& a, const HostPort& b) {
    return a.port != 0 && a.port == b.port && a.host == b.host;
  };
  if (same(listen, bulk))
    return refuse(config, "node.listen_bulk", "is the same address as node.listen");
  if (same(http, listen) || same(http, bulk))
    return refuse(config, "node.http",
                  http.text() + " is taken by the " + (same(http, listen) ? "control" : "bulk") +
                      " plane (node.listen " + config.node.listen + ")");
  return {};
}

std::string readable(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::strerror(errno);
  struct stat info {};
  const bool is_file = ::fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode);
  ::close(fd);
  return is_file ? "" : "it is a directory";
}

Status check_data_files(const Config& config, std::string_view key,
                        const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const std::string why = readable(file);
    if (why.empty()) continue;
    const std::string where = where_of(config, key);
    return fail(ErrorCode::kDataRefused,
                where + ": " + std::string(key) + ": cannot read " + in_quotes(file) + ": " + why);
  }
  return {};
}

}  // namespace

std::string where_of(const Config& config, std::string_view key) {
  const auto found = config.origin.find(std::string(key));
  if (found == config.origin.end()) return "default";
  const std::string& origin = found->second;
  if (origin == "flag") return "command line";
  for (const std::string_view prefix : {"file ", "environment "})
    if (origin.starts_with(prefix)) return origin.substr(prefix.size());
  return origin;
}

Status check_together(const Config& config) {
  for (const auto check : {check_run, check_model, check_data, check_train, check_method,
                           check_exchange, check_addresses})
    KITH_TRY(check(config));
  return {};
}

std::vector<std::string> find_unused_keys(const Config& config) {
  std::vector<std::string> notes;
  const auto unused = [&](std::string_view key, bool applies, const std::string& to) {
    if (applies || !is_set(config, key)) return;
    notes.push_back(where_of(config, key) + ": " + std::string(key) + " does not apply to " + to +
                    ": ignored");
  };
  const auto& train = config.train;
  unused("train.momentum", is_sgd(config), train.optimizer);
  unused("train.nesterov", is_sgd(config), train.optimizer);
  for (const std::string_view key : {"train.beta1", "train.beta2", "train.eps"})
    unused(key, !is_sgd(config), train.optimizer);
  const std::string schedule = "schedule " + in_quotes(train.schedule);
  unused("train.step_every", train.schedule == "step", schedule);
  unused("train.gamma", train.schedule == "step", schedule);
  unused("train.floor", train.schedule == "cosine", schedule);
  unused("model.channels", is_cnn(config), "model " + config.model.kind);
  unused("model.hidden", config.model.kind != "linear", "model " + config.model.kind);
  unused("run.start_timeout", config.run.start_members > 1, "run.start_members = 1");
  unused("data.shard_by",
         config.data.shard.find('/') != std::string::npos || config.data.shard == "auto",
         "data.shard = " + in_quotes(config.data.shard));
  return notes;
}

Status check_files(const Config& config) {
  if (config.data.train.empty())
    return fail(ErrorCode::kUsage,
                (config.file.empty() ? std::string("data.train") : config.file + ": data.train") +
                    ": missing: nothing to train on; expected " + files_of(config));
  KITH_TRY(check_data_files(config, "data.train", config.data.train));
  KITH_TRY(check_data_files(config, "data.test", config.data.test));
  if (config.cluster.key_file.empty()) return {};
  const std::string why = readable(config.cluster.key_file);
  if (why.empty()) return {};
  return refuse(config, "cluster.key_file",
                "cannot read " + in_quotes(config.cluster.key_file) + ": " + why +
                    " (`kith keygen FILE` makes one)");
}

}  // namespace kith::node
