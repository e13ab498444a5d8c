#include "node/cli/doctor_run.h"

#include "compute/model.h"
#include "node/config/version.h"
#include "node/setup/run_setup.h"

namespace kith::node {
namespace {

DoctorCheck made(std::string name, CheckResult result, std::string text, std::string remedy = {}) {
  return {std::move(name), result, std::move(text), std::move(remedy)};
}

bool is_set(const Config& config, const std::string& key) {
  const auto origin = config.origin.find(key);
  return origin != config.origin.end() && origin->second != "default";
}

DoctorCheck same_text(const Config& config, const std::string& check, const std::string& key,
                      const std::string& here, const std::string& there) {
  if (config.file.empty() && !is_set(config, key))
    return made(check, CheckResult::kOk,
                key + " there is \"" + there + "\" (not set here: not compared)");
  if (here == there)
    return made(check, CheckResult::kOk, key + " is \"" + here + "\" on both sides");
  return made(check, CheckResult::kFailed, key + ": \"" + here + "\" here, \"" + there + "\" there",
              "one file for all nodes: give both the same " + key + ", or this is the wrong node");
}

struct OwnRun {
  Hash256 schema_hash;
  schema::Facts facts;
};

Result<OwnRun> own_run(Config config) {
  config.data.shard = "all";
  KITH_ASSIGN(const auto composition,
              gossip::compose(config.method.name, method_overrides(config)));
  KITH_ASSIGN(const auto data, compute::load_data(data_spec(config)));
  KITH_ASSIGN(const auto model,
              compute::make_model(model_spec(config, data), optimizer_spec(config)));
  return OwnRun{model->schema().hash(config.exchange.fragment_bytes),
                run_facts(config, composition, data)};
}

DoctorCheck same_model(const OwnRun& own, const schema::About& about) {
  const std::string here = own.schema_hash.hex().substr(0, 12),
                    there = about.schema_hash.hex().substr(0, 12);
  if (own.schema_hash == about.schema_hash)
    return made("model", CheckResult::kOk, "schema " + here + " on both sides");
  return made("model", CheckResult::kFailed, "schema " + here + " here, " + there + " there",
              "the [model] table, data.classes, the shape of the samples or "
              "exchange.fragment_bytes differ: use the "
              "same file on both sides");
}

DoctorCheck same_facts(const OwnRun& own, const schema::Facts& there) {
  const auto difference = first_difference(own.facts, there);
  if (!difference)
    return made("settings", CheckResult::kOk,
                "seed, length, method and normalisation are the same");
  return made("settings", CheckResult::kFailed, *difference,
              "members must agree on this: use the same file on both sides (data.mean and data.std "
              "may be set in it)");
}

}  // namespace

void compare_run(const Config& config, const schema::Welcome& welcome,
                 std::vector<DoctorCheck>& checks) {
  const std::string& there = welcome.record.version_text;
  checks.push_back(made("version", CheckResult::kOk,
                        "protocol " + std::to_string(schema::kProtocolVersion) +
                            " on both sides; kith " + version() + " here, " + there + " there"));
  if (!welcome.about) {
    checks.push_back(made("version", CheckResult::kFailed,
                          "that node does not know what a probe is",
                          "run the same release of kith on both sides"));
    return;
  }
  checks.push_back(
      same_text(config, "cluster", "cluster.name", config.cluster.name, welcome.about->cluster));
  checks.push_back(same_text(config, "run", "run.id", config.run.id, welcome.about->run_id));
  if (!is_set(config, "data.train")) {
    checks.push_back(made("model", CheckResult::kSkipped,
                          "schema " + welcome.about->schema_hash.hex().substr(0, 12) +
                              " there; give -c FILE with [model] and [data] to compare"));
    return;
  }
  const auto own = own_run(config);
  if (!own) {
    checks.push_back(made("model", CheckResult::kSkipped,
                          "this side's model cannot be made: " + own.error().message));
    return;
  }
  checks.push_back(same_model(*own, *welcome.about));
  checks.push_back(same_facts(*own, welcome.facts));
}

}  // namespace kith::node
