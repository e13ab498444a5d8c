// A network of its own for one test: one namespace per node, all on one bridge in a namespace that
// is the hub, and one more namespace for a proxy. Links can be cut per direction, made lossy, slow
// or narrow, and healed; nothing of it is visible outside. Nodes answer HTTP on their own loopback,
// which no fault touches (InNetns).
//
// Everything is named after the test's process, "kl<pid>...", and lives in these namespaces:
// deleting them removes it. The destructor does, and the next lab removes what a killed test left.
// Needs root, ip, tc, nft and ss; missing() says what is not there. Faults are applied where
// packets arrive (nft, input hook) and where they leave (tc), since kernels without netem are to
// do. Thread: one.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace kith::e2e {

class NetLab {
 public:
  // Empty: a lab can be made here. Else the reason, for GTEST_SKIP.
  static const std::string& missing();

  explicit NetLab(std::size_t nodes);
  ~NetLab();
  NetLab(const NetLab&) = delete;
  NetLab& operator=(const NetLab&) = delete;

  [[nodiscard]] std::size_t size() const { return faults_.size(); }
  [[nodiscard]] std::string netns(std::size_t node) const;  // file, as Node and InNetns take it
  [[nodiscard]] std::string proxy_netns() const;
  [[nodiscard]] static std::string address(std::size_t node);  // 10.77.0.x
  [[nodiscard]] static std::string proxy_address(
      std::size_t node);  // 10.77.1.x: stands for this node in the proxy's namespace

  // What `from` sends does not arrive at `to`, silently. The other direction goes on.
  void cut(std::size_t from, std::size_t to);
  void cut_both(std::size_t a, std::size_t b);
  void split(const std::set<std::size_t>& half);  // between these and all others, both ways
  void isolate(std::size_t node) { split({node}); }
  void restore(std::size_t from, std::size_t to);  // undoes one cut
  void loss(std::size_t node, unsigned percent);   // of the packets that arrive at it
  // Packets longer than this vanish at it, without a word to the sender; 0: none do.
  void longest_packet(std::size_t node, unsigned bytes);
  void heal();  // all of the above, everywhere
  void rate(std::size_t node,
            const std::string& rate);  // "1mbit" both ways; empty: as fast as it goes
  void mtu(std::size_t node, unsigned bytes);
  void blackhole_route(std::size_t node, std::size_t to, bool on);
  // Resets every established connection of the node; returns how many.
  std::size_t reset_connections(std::size_t node);

 private:
  struct Faults {
    std::set<std::size_t> cut_from;
    unsigned loss_percent = 0;
    unsigned longest_packet_bytes = 0;
  };
  void apply(std::size_t node) const;
  void attach(const std::string& netns, const std::string& link,
              const std::vector<std::string>& addresses) const;
  [[nodiscard]] std::string name(const std::string& what) const;
  [[nodiscard]] std::string name(std::size_t node) const {
    return name("n" + std::to_string(node));
  }

  std::string prefix_;
  std::vector<Faults> faults_;
};

// Path of a system program, empty if it is not installed.
std::string tool(const std::string& program);
// Runs one; its output, or an abort of the test with it when it fails.
std::string must_run(const std::vector<std::string>& command, const std::string& netns = "");

}  // namespace kith::e2e
