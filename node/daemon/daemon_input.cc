#include "node/daemon/daemon_input.h"

#include <filesystem>
#include <utility>

#include "node/setup/run_setup.h"
#include "node/text/text.h"

namespace kith::node {

namespace {

Result<std::optional<ClusterKey>> load_key(const std::string& file) {
  if (file.empty()) return std::optional<ClusterKey>();
  auto loaded = ClusterKey::load(file);
  // Whatever is wrong with it, the configuration names it.
  if (!loaded) return fail(ErrorCode::kUsage, loaded.error().message);
  return std::optional<ClusterKey>(std::move(*loaded));
}

}  // namespace

Result<RunInput> RunInput::load(const Config& config) {
  RunInput input;
  KITH_ASSIGN(input.key, load_key(config.cluster.key_file));
  KITH_ASSIGN(input.composition, gossip::compose(config.method.name, method_overrides(config)));
  KITH_ASSIGN(input.data, compute::load_data(data_spec(config)));
  KITH_ASSIGN(input.model,
              compute::make_model(model_spec(config, input.data), optimizer_spec(config)));
  input.schema_hash = input.schema().hash(config.exchange.fragment_bytes);
  input.schedule = schedule_spec(config, input.data);
  KITH_TRY(compute::validate(input.schedule));
  return input;
}

Result<Home> Home::take(Config& config, LogSink& log) {
  KITH_ASSIGN(DataDir dir, take_data_dir(config.node.data_dir, host_name()));
  if (is_automatic(config.node.data_dir)) {
    config.node.data_dir = dir.path;
    if (config.origin.at("node.name") == "default")
      config.node.name = std::filesystem::path(dir.path).filename().string();
    log.log(LogLevel::kInfo, "kithd", "took a data directory",
            {{"data_dir", dir.path}, {"name", config.node.name}});
  }
  KITH_ASSIGN(Identity identity, Identity::load_or_create(dir.path));
  return Home{std::move(dir), identity};
}

Result<std::optional<LoadedFinal>> Home::finished(const Config& config,
                                                  const RunInput& input) const {
  KITH_ASSIGN(std::optional<LoadedFinal> final, load_final_model(final_path(), input.schema()));
  if (final && final->facts.run_id != config.run.id) final.reset();
  return final;
}

}  // namespace kith::node
