#include "tests/docker/stack.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "tests/boards/prometheus_server.h"

namespace kith::docker {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kCompose = "/usr/bin/docker-compose";
constexpr const char* kProject = "kithtest";

std::string file_text(const std::string& path) { return e2e::bytes_of(path); }

// docker/Dockerfile without its build stage: the programs come from an image instead.
std::string runtime_only() {
  std::string text = file_text(KITH_SOURCE_DIR "/docker/Dockerfile");
  const std::string head = text.substr(0, text.find("# ---- build"));
  std::string tail = text.substr(text.find("# ---- runtime"));
  return head + std::regex_replace(tail, std::regex("--from=build"), "--from=kith-programs:test");
}

// A loopback port that is free now.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  (void)::bind(fd, reinterpret_cast<const sockaddr*>(&address), size);
  (void)::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

std::string http_get(int port, const std::string& path) {
  e2e::Node client("client", "/nonexistent");
  client.set_http("127.0.0.1:" + std::to_string(port));
  return client.get_text(path);
}

}  // namespace

Stack::Stack(const Engine& engine) : engine_(engine), prometheus_port_(free_port()) {
  page_port_ = 27480;  // below the ephemeral ports: the engine takes them in order
  settings_ = {{"PROMETHEUS_PORT", std::to_string(prometheus_port_)},
               {"GRAFANA_PORT", std::to_string(free_port())},
               {"KITH_PAGE_PORTS", "27480-27579"},
               {"KITH_RUN_EPOCHS", "100000"}};
}

Stack::~Stack() { (void)down(); }

std::string Stack::make_images() {
  const std::string folder = engine_.folder() + "/images";
  fs::create_directories(folder);
  const Finished collected = e2e::run_program(
      {"/bin/sh", "-c",
       "cd '" KITH_SOURCE_DIR "' && docker/collect.sh cpu '" KITH_BINARY_DIR "' '" + folder +
           "/tree/opt/kith'"});
  if (collected.exit.code != 0) return "docker/collect.sh: " + collected.output;
  if (const std::string error = engine_.import_folder(folder + "/tree", "kith-programs:test");
      !error.empty())
    return error;
  std::ofstream(folder + "/Dockerfile") << runtime_only();
  const Finished node = engine_.build(
      KITH_SOURCE_DIR, {"-q", "-f", folder + "/Dockerfile", "-t", "kith:0.1.0"}, seconds(300));
  if (node.exit.code != 0) return "the runtime stage of docker/Dockerfile: " + node.output;
  const Finished prometheus = engine_.build(KITH_SOURCE_DIR "/tests/docker/prometheus",
                                            {"-q", "-t", "prom/prometheus:v2.53.4"}, seconds(300));
  return prometheus.exit.code == 0 ? "" : "tests/docker/prometheus: " + prometheus.output;
}

std::vector<std::string> Stack::prefix() const {
  // A file of settings of its own: docker/.env is the user's.
  const std::string env = engine_.folder() + "/env";
  std::ofstream out(env);
  for (const auto& [name, value] : settings_) out << name << "=" << value << "\n";
  std::vector<std::string> arguments = {kCompose, "--env-file", env, "-p", kProject};
  for (const std::string& file : files_)
    arguments.insert(arguments.end(), {"-f", std::string(KITH_SOURCE_DIR "/") + file});
  return arguments;
}

Finished Stack::compose(std::vector<std::string> arguments, seconds bound) {
  std::vector<std::string> all = prefix();
  all.insert(all.end(), arguments.begin(), arguments.end());
  return e2e::run_program(all, bound, {{"DOCKER_HOST", engine_.host()}});
}

Finished Stack::up(int nodes) {
  return compose({"up", "-d", "--no-build", "--no-recreate", "--scale",
                  "node=" + std::to_string(nodes), "key", "node", "prometheus"});
}

Finished Stack::down() { return compose({"down", "-v", "--remove-orphans"}); }

std::vector<Replica> Stack::replicas() const {
  std::istringstream lines(engine_.ask(
      {"ps", "-a", "--filter", std::string("label=com.docker.compose.project=") + kProject,
       "--filter", "label=com.docker.compose.service=node", "--format",
       "{{.Label \"com.docker.compose.container-number\"}} {{.ID}}"}));
  std::vector<Replica> found;
  for (Replica r; lines >> r.number >> r.container;) {
    std::istringstream state(
        engine_
            .docker({"inspect", "-f",
                     "{{.State.Status}} {{.State.Health.Status}} {{.State.ExitCode}} "
                     "{{.RestartCount}} {{.State.Pid}}",
                     r.container})
            .output);
    state >> r.status >> r.health >> r.exit_code >> r.restarts >> r.pid;
    const std::string text = log(r);
    static const std::regex kTaken("data_dir=(\\S+)");
    for (std::sregex_iterator at(text.begin(), text.end(), kTaken), end; at != end; ++at)
      r.data_dir = (*at)[1];
    found.push_back(r);
  }
  std::ranges::sort(found, {}, &Replica::number);
  return found;
}

Replica Stack::replica(int number) const {
  for (const Replica& r : replicas())
    if (r.number == number) return r;
  return {};
}

std::string Stack::log(const Replica& replica) const {
  return engine_.docker({"logs", replica.container}).output;
}

std::map<std::string, std::string> Stack::members(const Replica& seen_by) const {
  const json answer = json::parse(
      engine_.docker({"exec", seen_by.container, "kith", "members", "-o", "json"}).output, nullptr,
      false);
  std::map<std::string, std::string> found;
  if (!answer.is_object()) return found;
  for (const json& member : answer.value("members", json::array()))
    found[member.value("name", "")] = member.value("state", "");
  return found;
}

std::size_t Stack::alive(const Replica& seen_by) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      members(seen_by), [](const auto& member) { return member.second == "alive"; }));
}

bool Stack::settled(std::size_t nodes) const {
  const auto all = replicas();
  return all.size() >= nodes && std::ranges::all_of(all, [&](const Replica& r) {
           return r.status != "running" || (r.health == "healthy" && alive(r) == nodes);
         });
}

json Stack::query(const std::string& expression) const {
  const json answer = json::parse(
      http_get(prometheus_port_, "/api/v1/query?query=" + boards::testing::encoded(expression)),
      nullptr, false);
  return answer.is_object() && answer.contains("data") ? answer["data"]["result"] : json::array();
}

std::string Stack::page(const std::string& path) const { return http_get(page_port_, path); }

std::vector<std::string> Stack::published() const {
  std::istringstream words(engine_.ask({"ps", "--format", "{{.Ports}}"}));
  std::vector<std::string> found;
  for (std::string word; words >> word;)
    if (word.find("->") != std::string::npos) found.push_back(word);
  return found;
}

void Stack::print_logs() const {
  for (const Replica& r : replicas())
    std::cout << "==== node " << r.number << " " << r.status << " " << r.health << " exit "
              << r.exit_code << "\n"
              << log(r);
}

}  // namespace kith::docker
