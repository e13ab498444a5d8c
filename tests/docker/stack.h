// docker/compose.yaml, running: what a user types, with Debian's docker-compose 1.29, and what one
// can see of it from outside. The image is made from docker/Dockerfile's own runtime stage with the
// programs of this build, so that nothing is compiled again (image_test builds the whole image).
// Prometheus is Debian's, under the name that compose.yaml asks for. Grafana cannot be had without
// a registry: that service is left out.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/docker/engine.h"

namespace kith::docker {

struct Replica {
  int number = 0;
  std::string container, status, health, data_dir;
  int exit_code = -1, restarts = 0;
  int pid = 0;  // of its first process, as this machine sees it
};

class Stack {
 public:
  explicit Stack(const Engine& engine);
  ~Stack();

  // Makes the two images; what went wrong, or nothing.
  std::string make_images();

  // Settings as in docker/.env, and override files, from now on.
  void set(const std::string& name, const std::string& value) { settings_[name] = value; }
  void add_file(const std::string& file) { files_.push_back(file); }

  // `docker-compose up -d --scale node=N` without Grafana.
  Finished up(int nodes);
  Finished down();  // with its volumes
  Finished compose(std::vector<std::string> arguments, seconds bound = seconds(120));

  [[nodiscard]] std::vector<Replica> replicas() const;
  [[nodiscard]] Replica replica(int number) const;
  [[nodiscard]] std::string log(const Replica& replica) const;
  // Members as one replica sees them, by name: their state.
  [[nodiscard]] std::map<std::string, std::string> members(const Replica& seen_by) const;
  [[nodiscard]] std::size_t alive(const Replica& seen_by) const;
  // All replicas are healthy and see `nodes` alive.
  [[nodiscard]] bool settled(std::size_t nodes) const;
  // The result of an instant query; empty when Prometheus does not answer.
  [[nodiscard]] nlohmann::json query(const std::string& expression) const;
  // What answers at this path on the loopback port of the first status page.
  [[nodiscard]] std::string page(const std::string& path) const;
  // Every published address of every container.
  [[nodiscard]] std::vector<std::string> published() const;
  void print_logs() const;

 private:
  std::vector<std::string> prefix() const;

  const Engine& engine_;
  std::map<std::string, std::string> settings_;
  std::vector<std::string> files_ = {"docker/compose.yaml"};
  int page_port_ = 0, prometheus_port_ = 0;
};

}  // namespace kith::docker
