// ControlLoop: the daemon's main thread after start: membership, joining, adopting, training,
// checkpoints, the finish, leaving.
//
//   waiting -> joining (a state is fetched) -> training -> finishing -> complete -> leaving
//           -> training (equal start, or alone)
//   any -> leaving -> exit 0, or 1: without the final model, or with one that may not be the
//   others'
//
// It owns the control Mesh and every decision about the node's state; the exchange loop and the
// trainer are told, never asked, and report back through queues. run() returns the process's exit
// code. Threads: run() on one; the public queries on any.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "compute/trainer.h"
#include "gossip/membership/finish.h"
#include "gossip/membership/progress.h"
#include "gossip/membership/swim_limits.h"
#include "gossip/method.h"
#include "node/config/config.h"
#include "node/config/reload.h"
#include "node/daemon/checkpointer.h"
#include "node/daemon/claims.h"
#include "node/daemon/data_share.h"
#include "node/daemon/donor.h"
#include "node/daemon/exchange_loop.h"
#include "node/daemon/handshake.h"
#include "node/daemon/join.h"
#include "node/daemon/roster.h"
#include "node/daemon/state_assembly.h"
#include "node/daemon/tally.h"
#include "node/daemon/wake.h"
#include "node/daemon/write_retry.h"
#include "node/mesh/mesh.h"

namespace kith::node {

// Everything the loop works with; all of it outlives the loop. `control` and `exchange` are null
// when standalone.
struct ControlParts {
  const Config* config = nullptr;
  const Identity* identity = nullptr;
  Incarnation incarnation = 0;  // boot counter << 32
  std::uint64_t boot_nonce = 0;
  const Clock* clock = nullptr;
  LogSink* log = nullptr;
  const compute::ModelSchema* schema = nullptr;
  const compute::LoadedData* data = nullptr;
  compute::Replica* replica = nullptr;
  compute::Trainer* trainer = nullptr;
  Mesh* control = nullptr;
  ExchangeLoop* exchange = nullptr;
  RunPolicy* policy = nullptr;
  Donor* donor = nullptr;
  Checkpointer* checkpointer = nullptr;
  CheckpointStore* store = nullptr;
  gossip::Composition composition;
  gossip::RunLength length;
  Hash256 schema_hash;
  std::string model_json;
  std::string bulk_address;  // bound; what others dial is derived with `advertise`
  std::string http_address;
  std::uint64_t seed = 0;
  // From a checkpoint: what the cluster had done, and whether this node has ever trained or
  // adopted.
  std::optional<CheckpointFacts> restored;
  const LiveSettings* live = nullptr;              // null: those of the configuration
  std::atomic<Samples>* others_samples = nullptr;  // read by the trainer for the schedule
  std::atomic<double>* length_samples =
      nullptr;  // read by the trainer's listener; 0 = endless, or counted in steps
  std::atomic<Step>* others_steps = nullptr;  // likewise
};

// What people and metrics see; a copy, consistent in itself.
struct NodeStatus {
  schema::MemberRecord self;
  std::vector<gossip::SwimMember> members;
  gossip::SwimCounters swim;
  std::optional<std::size_t>
      neighbours;             // with a partial view: how many links are kept; empty: links with all
  bool isolated = false;      // no member answers: it is us who are cut off
  unsigned local_health = 0;  // 0 = well; probes and timeouts are stretched by one more than that
  TimePoint now;
  Samples progress = 0;
  double epoch = 0.0;
  double length_samples = 0.0;
  ExchangeSnapshot exchange;
  MeshCounters control;
  std::map<NodeId, double> last_exchange_wall_seconds;
  std::array<std::uint64_t, 16> refused_by_reason{};  // our proposals, by schema::AbortReason
  std::array<std::uint64_t, 16> refused_others_by_reason{};  // others' proposals
  std::uint64_t refused_others_busy = 0;
  double consensus_relative =
      -1.0;  // median of the last 16 rounds' relative distances; < 0 unknown
  double consensus_absolute = -1.0;
  double staleness_steps = -1.0;  // median of the last 16
  CheckpointStats checkpoints;
  std::uint64_t adoptions = 0;
  double final_accuracy = -1.0;
  // Addresses that are dialled and end the key exchange (Mesh::key_refusals()).
  std::vector<std::string> key_refusals;
  std::string waiting_for;  // a sentence while there is something to wait for
  std::string trouble;      // last error, "" if none
  std::string
      final_error;  // why the final model is not on disk yet, "" if there is no such trouble
};

class ControlLoop {
 public:
  ControlLoop(ControlParts parts,
              std::function<void(const gossip::ExchangeEvent&)> observe_exchange);
  ~ControlLoop();

  int run();

  // Any thread, async-signal safe: leave in order.
  void request_leave();
  void checkpoint_interval_changed();  // in LiveSettings
  // Any thread: queued, executed on the loop; the result comes back through the callback on the
  // loop's thread. What is still queued when run() ends is dropped: ask ended().
  void checkpoint_now(std::function<void(const Result<std::string>&)> done);
  // Likewise: the final model, or as it is now, to the file `to`; no checkpoint is written, none
  // goes.
  void export_now(const std::string& to, std::function<void(const Result<std::string>&)> done);
  void join(const std::string& address);
  [[nodiscard]] bool ended() const { return ended_; }

  [[nodiscard]] NodeStatus status() const;

  // Other members know a higher incarnation of this node than its data directory does: to be
  // raised, and started again.
  [[nodiscard]] std::optional<Incarnation> incarnation_to_pass() const {
    return incarnation_to_pass_;
  }

  // Called on the trainer thread (through the daemon's listener).
  void on_evaluated(const compute::EvalResult& result);
  void on_nonfinite(const std::string& what);
  void wake();

 private:
  enum class Fetching { kNothing, kAdoption, kFinalManifest, kFinalItems };
  // Shared between the loop and the writer thread: values and integers of the final model;
  // `manifest` of a declarer's.
  struct FinalState {
    FinalFacts facts;
    std::vector<std::byte> manifest;
    std::vector<float> values;
    std::vector<std::int64_t> integers;
  };

  void post(std::function<void()> command);
  std::function<void(const Result<std::string>&)> on_loop(
      std::function<void(const Result<std::string>&)> done);
  void say(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
  [[nodiscard]] TimePoint now() const { return parts_.clock->now(); }
  [[nodiscard]] TimePoint deadline() const;

  // control_loop.cc: the loop and what comes in; control_figures.cc: what goes out
  void turn();
  void handle(MeshEvent& event);
  void handle_message(const NodeId& from, schema::Message& message);
  void on_peer_up(const PeerUp& up);
  void on_refused(const Refused& refused);
  void on_member_event(const gossip::SwimEvent& event);
  void forget(const NodeId& id);
  void identity_in_use(const std::string& where);
  void pass_incarnation(Incarnation seen, const NodeId& teller);
  void handle_happenings();
  void on_exchange(const gossip::ExchangeEvent& event);
  void beat();  // once per probe interval: our figures, FINAL again, lag
  void refresh_record();
  void watch_keys();  // says who ends the key exchange, once until that changes
  void refresh_peers();
  void publish_status();

  // control_state.cc: waiting, joining, training, leaving
  void advance();  // one look at the state machine
  void advance_waiting();
  void advance_training();
  void enter(schema::RunState state);
  void start_training();
  void advance_passing();
  [[nodiscard]] bool enough_members();
  void advance_leaving();
  void finish_leaving();
  [[nodiscard]] CheckpointFacts facts() const;
  void schedule_checkpoint();
  void write_checkpoint(std::function<void(const Result<std::string>&)> done = {});
  void write_export(const std::string& to, std::function<void(const Result<std::string>&)> done);

  // control_adopt.cc: how far behind, and taking the cluster's state
  [[nodiscard]] Step depth() const;
  [[nodiscard]] bool somebody_can_give() const;
  [[nodiscard]] Step max_lag() const;  // in steps
  void refresh_belief();  // what the members' figures are worth now; see node/daemon/claims.h
  void consider_lag();
  [[nodiscard]] bool
  alone_ahead();  // for long: nobody vouches for our depth, and nobody adopts from us
  void give_up_and_adopt(Step steps_behind);
  [[nodiscard]] bool averages() const { return parts_.composition.what != gossip::What::kNothing; }
  void begin_adoption(const std::string& why);
  void tell_donors();
  [[nodiscard]] bool nobody_holds_more() const;
  [[nodiscard]] std::vector<NodeId> adoption_donors();
  [[nodiscard]] std::vector<NodeId> final_givers();
  void on_fetched(gossip::StateTransfer::Fetched& fetched);
  void on_fetch_end(const FetchEnded& end);
  void adopt_assembled();
  void recover_alone(const std::string& what);

  // control_counts.cc: what members have done
  void count_members();
  void count(const schema::MemberRecord& record);
  [[nodiscard]] Tallies tallies_by(gossip::Progress::Word least) const;
  [[nodiscard]] const Tallies& tallies();
  [[nodiscard]] std::size_t others_living() const;
  void ask_tallies();
  void on_tally(const NodeId& from, const schema::Tally& tally);

  // control_finish.cc: the end of a run
  void begin_finish();
  void advance_finish();
  void declare();
  void declare_with(std::shared_ptr<StateAssembly> copy);
  void declare_made(const std::shared_ptr<const FinalState>& made);
  void agree_again();
  void accept_final(const NodeId& from, const schema::Final& final);
  [[nodiscard]] bool is_credible(const schema::Final& final) const;
  [[nodiscard]] bool most_have_ended() const;
  void fetch_final_manifest();
  void on_manifest(const Slice& bytes);
  void compare_with_final(std::function<void(gossip::FetchOrder)> then);
  void fetch_final_items();
  void check_final_items();
  void adopt_final();
  void write_own_final();
  [[nodiscard]] std::vector<gossip::FinishMachine::Peer> finish_peers() const;
  [[nodiscard]] FinalFacts final_facts(double accuracy) const;
  // Merges everything pending with exchanges at rest; `then` on the loop, with a copy of the state,
  // unless by then another rest was asked for or exchanges go on.
  void settle(std::function<void(std::shared_ptr<StateAssembly> copy)> then);
  [[nodiscard]] static std::shared_ptr<FinalState> final_state(StateAssembly& copy,
                                                               const FinalFacts& facts);

  // control_final.cc: the final model on disk, and with what the process ends
  void note_absence(Duration length);
  void note_company();
  void count_distance(const gossip::ExchangeEvent& event, double relative);
  [[nodiscard]] bool nobody_lives() const;
  void complete(std::shared_ptr<const FinalState> made);
  void drop_owed_final();
  void void_final();
  void remove_void_final();
  void write_final();
  void on_final_written(const FinalFacts& facts);
  void on_final_failed(const Error& error);
  void retry_final();
  [[nodiscard]] bool final_tried_last();
  [[nodiscard]] int last_word();
  [[nodiscard]] std::string final_path() const {
    return parts_.config->node.data_dir + "/model.safetensors";
  }

  ControlParts parts_;
  std::function<void(const gossip::ExchangeEvent&)> observe_exchange_;
  Preset preset_;
  NodeId self_;
  Random random_;
  schema::MemberRecord record_;
  Roster roster_;
  gossip::Progress progress_;
  TallyAsker tally_asker_;
  std::set<NodeId> tally_peers_;    // linked, and understand TALLY
  std::optional<Tallies> tallies_;  // of this beat, if somebody asked
  gossip::RateLimiter tallies_told_;
  DataShare data_share_;
  gossip::FinishMachine finish_;
  JoinMachine join_;
  schema::RunState state_ = schema::RunState::kWaiting;
  bool synced_ = false;  // holds a state of this run: trained, adopted, or started equal
  std::optional<int> exit_code_;
  TimePoint last_turn_;
  TimePoint waiting_since_;
  TimePoint next_checkpoint_;
  TimePoint next_waiting_word_;
  TimePoint leave_deadline_;
  std::uint64_t epochs_evaluated_ = 0;
  TimePoint next_beat_;
  TimePoint next_hurry_;
  std::map<std::string, std::string>
      refusals_said_;  // of seeds: said again only when the reason changes
  TimePoint next_status_;
  std::set<std::string> key_refusals_;  // peers, as said
  std::vector<BulkPeer> bulk_peers_;
  bool peers_changed_ = true;
  std::int64_t depth_ahead_ = 0;  // of the model's depth over our own steps
  Belief belief_;
  bool belief_stale_ = true;
  std::optional<TimePoint> ahead_since_;  // of all other members, by more than max_lag
  std::optional<Incarnation> incarnation_to_pass_;
  bool passing_ = false;  // the checkpoint before that is under way
  std::uint64_t adoptions_ = 0;
  int recoveries_alone_ = 0;
  int nonfinite_times_ = 0;  // in a row, each less than kNonFiniteForgotten after the one before
  TimePoint last_nonfinite_;
  bool unhealthy_ = false;

  // adoption and final fetch
  Fetching fetching_ = Fetching::kNothing;
  std::shared_ptr<StateAssembly> assembly_;  // shared with the writer thread while that compares it
  NodeId donor_;
  std::map<NodeId, TimePoint> donors_failed_;
  std::vector<NodeId> donors_told_;  // to the exchange loop, of the running fetch
  TimePoint retry_fetch_at_;
  std::string adoption_reason_;
  TimePoint adoption_began_;
  std::optional<Manifest> manifest_;
  Slice manifest_bytes_;
  bool settling_ = false;
  std::uint64_t rest_ = 0;  // counts rests, and their ends: what was made of an older one is void
  bool starting_ = false;   // the first checkpoint is being written
  struct Absence {
    Duration length{};
    TimePoint back;
    Samples progress = 0;  // known then
  };
  std::optional<Absence> absence_;  // of this process, until a member has exchanged with it since
  bool company_ = false;            // a member lived at the end of the last turn
  std::optional<NodeId> followed_;  // the last declarer whose FINAL was accepted
  std::shared_ptr<const FinalState> owed_;  // to the disk; shared with the writer thread
  unsigned final_writes_ = 0;               // under way, or removals
  bool final_written_ = false;
  std::string void_final_error_;  // a final model that is void stays on disk, and why; empty: none
  bool final_on_disk_ = false;    // the writer thread's: this process has written the file
  bool final_last_try_ = false;   // when leaving
  WriteRetry final_retry_;
  std::string final_error_;
  std::set<NodeId> false_finals_;  // whose wrong FINAL was mentioned since the last change of state
  bool leave_sent_ = false;
  bool leave_checkpointed_ = false;
  bool leave_saving_ = false;                    // ... and it is not on disk yet
  std::optional<std::string> leave_checkpoint_;  // its path, once it is
  std::function<void(const compute::EvalResult&)> after_evaluation_;
  double final_accuracy_ = -1.0;

  // running figures
  std::deque<double> distances_relative_, distances_absolute_, staleness_;
  double round_distance_sq_ = 0.0, round_norm_sq_ = 0.0;
  unsigned round_fragments_ = 0;
  std::map<NodeId, double> last_exchange_wall_;
  std::array<std::uint64_t, 16> refused_{}, refused_others_{};
  std::uint64_t refused_others_busy_ = 0;
  std::string waiting_for_, trouble_;

  Wake wake_;
  std::atomic<bool> leave_requested_{false};
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;  // guards the two below
  std::vector<std::function<void()>> commands_;
  NodeStatus status_;
};

}  // namespace kith::node
