// Every message of kith's wire protocol, as plain structs. The bytes are Cap'n Proto (schema/kith.capnp, kept field
// by field beside this file); only schema/codec_*.cc know both. gossip/ sees these structs and nothing of the encoding.
//
// A message on a plane is exactly two ZeroMQ frames: header (one Cap'n Proto message) and payload (raw bytes, empty
// for all but CHUNK). Planes: control (<= 64 KiB) and bulk (<= 1 MiB payload + header). All messages of an exchange
// travel on the bulk plane, so none overtakes another. Every struct says its plane, its direction and its cost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"

namespace kith::schema {

inline constexpr std::uint32_t kProtocolVersion = 1;

// Limits that the decoder enforces (and encode() checks): configuration that ends up in a message must respect them.
// Texts are UTF-8 without control characters.
inline constexpr std::size_t kNameBytesMax = 128;         // node name, cluster name, run id
inline constexpr std::size_t kAddressBytesMax = 256;      // host:port
inline constexpr std::size_t kVersionTextBytesMax = 64;   // build version
inline constexpr std::size_t kFactsMax = 64;
inline constexpr std::size_t kFactNameBytesMax = 64;
inline constexpr std::size_t kFactValueBytesMax = 512;
inline constexpr std::size_t kWelcomeRecordsMax = 64;
inline constexpr std::size_t kNewsRecordsMax = 64;
inline constexpr std::size_t kNewsAccusationsMax = 64;
inline constexpr std::size_t kDigestBuckets = 64;
inline constexpr std::size_t kSyncEntriesMax = 512;
inline constexpr std::size_t kSyncWantedMax = 64;
inline constexpr std::size_t kViewRecordsMax = 32;
inline constexpr std::size_t kTallyEntriesMax = 400;
inline constexpr std::uint32_t kViewTtlMax = 16;
// Samples of a file or shard: far above any there is, and sums of a hundred such files do not overflow.
inline constexpr std::uint64_t kDataSamplesMax = std::uint64_t{1} << 57;
inline constexpr std::size_t kRejectDetailBytesMax = 1024;
inline constexpr std::uint32_t kChunkBytesMax = 1U << 20;
inline constexpr std::uint32_t kChunksPerPayloadMax = 4096;
inline constexpr std::size_t kCreditWordsMax = kChunksPerPayloadMax / 64;

enum class Plane : std::uint8_t { kControl = 0, kBulk = 1 };

using Nonce = std::array<std::uint8_t, 32>;
using Signature = std::array<std::uint8_t, 64>;  // Ed25519
using Key = std::array<std::uint8_t, 32>;

// Order matters: at equal incarnation the larger one wins (reliability: LEFT > DEAD > SUSPECT > ALIVE).
enum class MemberState : std::uint8_t { kAlive = 0, kSuspect = 1, kDead = 2, kLeft = 3 };
// What the node is doing, as `kith status` shows it.
enum class RunState : std::uint8_t {
  kWaiting = 0, kJoining = 1, kTraining = 2, kFinishing = 3, kComplete = 4, kLeaving = 5
};

// What one node says of itself (signed by its key) or last said (relayed). About 400 bytes.
struct MemberRecord {
  NodeId id;
  Incarnation incarnation = 0;
  std::uint64_t version = 0;         // rises with each change the owner makes within one incarnation
  MemberState state = MemberState::kAlive;  // not signed: others may say SUSPECT or DEAD
  RunState run_state = RunState::kWaiting;
  bool converged = false;            // finishing: last distances below the bound for every fragment
  std::string name;                  // <= 128 bytes
  std::string control_address;       // host:port as others should dial it, <= 256 bytes
  std::string bulk_address;
  std::string http_address;
  Step step = 0;                     // optimiser steps done by this node
  Samples samples = 0;               // samples trained by this node; never falls
  double loss = 0.0;                 // running training loss, NaN when unknown
  double accuracy = 0.0;             // last test accuracy 0..1, NaN when unknown
  double learning_rate = 0.0;
  double steps_per_second = 0.0;
  Hash256 data_fingerprint;          // of the whole training file (not of the shard)
  Samples data_samples = 0;          // samples in the whole file, <= 2^57
  Samples shard_samples = 0;         // of those, how many this node trains on, <= 2^57
  std::uint32_t shard_index = 0;     // 1-based; 0 = all
  std::uint32_t shard_count = 0;
  Key transport_key{};               // reserved: a per-node transport key
  std::uint32_t key_epoch = 0;       // reserved: rotation of the cluster key
  std::string version_text;          // build version, <= 64 bytes
  std::uint64_t boot_nonce = 0;      // random per start: two processes with one key and one boot counter tell each other apart
  bool left = false;                 // LEAVE was said: the last record of this life
  bool shares_data = false;          // shard = "auto": trains on its share among the members with the same fingerprint
  Step depth = 0;                    // optimiser steps that its model contains in sequence: its own, and after an exchange or an
                                     // adoption the greater of both sides'. Far below another's: adopt, do not average
  Signature signature{};
  bool operator==(const MemberRecord&) const = default;
};

// What the signature covers: BLAKE2b-256 over every field above it except `state`, in order.
Hash256 signing_hash(const MemberRecord& record);

// Names and values that must agree between members ("run.seed" = "7"): a difference is refused by name.
using Facts = std::vector<std::pair<std::string, std::string>>;  // <= 64, names <= 64 bytes, values <= 512

// HELLO: opens every connection, on both planes; dialler -> listener. Sent twice: first with peer_nonce zero
// (answered by CHALLENGE), then with the challenge's nonce and the signature over both.
struct Hello {
  Plane plane = Plane::kControl;
  std::uint32_t protocol_min = kProtocolVersion;
  std::uint32_t protocol_max = kProtocolVersion;
  std::string cluster;               // <= 128 bytes
  std::string run_id;                // <= 128 bytes
  Hash256 schema_hash;
  Facts facts;                       // control plane only
  MemberRecord record;
  Nonce nonce{};                     // the dialler's
  Nonce peer_nonce{};                // the listener's, from CHALLENGE; zero at first
  std::uint64_t lowest_open = 0;     // lowest open exchange sequence of this incarnation
  Signature signature{};             // over BLAKE2b("kith hello", plane, nonce, peer_nonce, id); zero at first
  bool probe = false;                // a diagnosis, no member: answered and never bound; its run is not judged
  std::uint16_t dial_back_port = 0;  // of a probe: tell by DIAL_BACK whether this port can be reached where it came from
  bool tallies = false;              // understands TALLY
  bool operator==(const Hello&) const = default;
};

// CHALLENGE: listener -> dialler, either plane. Smaller than HELLO (no amplification before proof of key).
struct Challenge {
  Nonce nonce{};                     // the listener's
  Nonce peer_nonce{};                // the dialler's, echoed
  bool operator==(const Challenge&) const = default;
};

// What a probe is told of the node that it asks.
struct About {
  std::string cluster;               // <= 128 bytes
  std::string run_id;                // <= 128 bytes
  Hash256 schema_hash;
  double wall_seconds = 0.0;         // its clock, since 1970; finite
  bool operator==(const About&) const = default;
};

// WELCOME: listener -> dialler after a proven HELLO. On the bulk plane `records` and `facts` are empty.
struct Welcome {
  MemberRecord record;               // the listener's own
  std::vector<MemberRecord> records; // <= 64 others; encode() leaves out the last ones if 64 KiB would be exceeded
  Facts facts;                       // the listener's, so that a joiner can take what it left open
  Incarnation seen_incarnation = 0;  // highest incarnation held for the dialler (it must be above)
  Nonce nonce{};                     // the listener's
  Nonce peer_nonce{};                // the dialler's
  Signature signature{};             // over BLAKE2b("kith welcome", plane, nonce, peer_nonce, id)
  std::optional<About> about;        // to a probe only
  bool tallies = false;              // understands TALLY
  bool operator==(const Welcome&) const = default;
};

enum class RejectCode : std::uint16_t {
  kUnknown = 0, kProtocol = 1, kCluster = 2, kRun = 3, kSchema = 4, kFacts = 5, kIdentity = 6,
  kSignature = 7, kFull = 8, kSelf = 9, kNotReady = 10
};
// REJECT: listener -> dialler, either plane; the text names both values.
struct Reject {
  RejectCode code = RejectCode::kUnknown;
  std::string detail;                // <= 1024 bytes
  NodeId id;                         // who refuses
  Incarnation seen_incarnation = 0;
  bool operator==(const Reject&) const = default;
};

enum class DialBackOutcome : std::uint16_t {
  kUnknown = 0,
  kReached = 1,      // something listens there
  kRefused = 2,      // the machine answered that nothing does
  kSilent = 3,       // no answer in time
  kUnreachable = 4,  // no way there
  kBusy = 5,         // not tried: too many such requests
};
// DIAL_BACK: control, listener -> probe: what came of its dial_back_port, once, after WELCOME.
struct DialBack {
  Nonce nonce{};                     // of the probe's HELLO
  DialBackOutcome outcome = DialBackOutcome::kUnknown;
  std::string address;               // that was tried; <= 256 bytes
  bool operator==(const DialBack&) const = default;
};

// ---- membership (SWIM, Das et al. 2002, with Lifeguard, arXiv 1707.00788) --------------------------------------------

// "I had no answer from `subject` at `incarnation`": a suspicion, signed by who has it. Void as soon as the subject shows a
// higher incarnation. About 150 bytes. A death is what a node concludes from enough of these; nobody can declare it alone.
struct Accusation {
  NodeId subject;
  Incarnation incarnation = 0;       // the subject's
  NodeId accuser;
  Signature signature{};             // by the accuser, over accusation_hash()
  bool operator==(const Accusation&) const = default;
};
// BLAKE2b-256("kith accusation", subject, incarnation, accuser).
Hash256 accusation_hash(const Accusation& accusation);

// What every membership message carries besides its purpose: the sender's own record first, then what others may not know.
struct News {
  std::vector<MemberRecord> records;      // <= 64; encode() leaves out the last ones if 64 KiB would be exceeded
  std::vector<Accusation> accusations;    // <= 64
  bool operator==(const News&) const = default;
};

// PING: control, prober -> subject. Answered by PONG at once.
struct Ping {
  std::uint64_t sequence = 0;        // the prober's
  News news;
  bool operator==(const Ping&) const = default;
};
// PONG: subject -> prober, or helper -> requester (then `subject` is not the sender): it answered.
struct Pong {
  std::uint64_t sequence = 0;        // of the PING or PING_REQUEST
  NodeId subject;
  News news;
  bool operator==(const Pong&) const = default;
};
// PING_REQUEST: requester -> helper: ping `subject` for me, answer PONG, or NACK in time.
struct PingRequest {
  std::uint64_t sequence = 0;
  NodeId subject;
  News news;
  bool operator==(const PingRequest&) const = default;
};
// NACK: helper -> requester: I am well, but `subject` did not answer me (Lifeguard: its absence says that we are unwell).
struct Nack {
  std::uint64_t sequence = 0;
  NodeId subject;
  News news;
  bool operator==(const Nack&) const = default;
};
// GOSSIP: news alone, to a few random members each gossip interval.
struct Gossip {
  News news;
  bool operator==(const Gossip&) const = default;
};
// DIGEST: anti-entropy, to one random member each sync interval: per bucket (first 6 bits of the id) the sum of 64-bit
// hashes of (id, incarnation) of the living in it. Answered by SYNC if something differs. About 600 bytes.
struct Digest {
  std::vector<std::uint64_t> buckets;     // 64
  bool operator==(const Digest&) const = default;
};
struct DigestEntry {
  NodeId id;
  Incarnation incarnation = 0;
  std::uint64_t version = 0;
  MemberState state = MemberState::kAlive;
  bool operator==(const DigestEntry&) const = default;
};
// SYNC: `entries` is all that the sender holds in `buckets`; the receiver sends back the records that are newer here, and
// asks for those that are newer there; `wanted` is answered with a GOSSIP.
struct Sync {
  std::vector<std::uint32_t> buckets;     // < 64 each, <= 64
  std::vector<DigestEntry> entries;       // <= 512
  std::vector<NodeId> wanted;             // <= 64
  News news;
  bool operator==(const Sync&) const = default;
};

enum class ViewKind : std::uint16_t {
  kUnknown = 0, kJoin = 1, kForwardJoin = 2, kNeighbour = 3, kNeighbourUrgent = 4, kAccepted = 5, kRefused = 6,
  kDisconnect = 7, kShuffle = 8, kShuffleReply = 9
};
// VIEW: control: the partial views of large clusters (HyParView, Leitao et al. 2007).
struct View {
  ViewKind kind = ViewKind::kUnknown;
  std::uint32_t ttl = 0;                  // hops left of a random walk, <= 16
  std::uint64_t sequence = 0;             // the origin's
  NodeId origin;                          // who joins or shuffles
  std::vector<MemberRecord> records;      // <= 32: the joiner's, or a sample of the sender's views
  bool operator==(const View&) const = default;
};

// What one member has done, and the data that it held.
struct TallyEntry {
  NodeId id;
  Samples samples = 0;
  Step steps = 0;
  Hash256 data_fingerprint;
  Samples data_samples = 0;               // of the whole file, <= 2^57; 0: unknown, and so is all about data
  Samples shard_samples = 0;              // <= 2^57
  std::uint32_t shard_index = 0;
  std::uint32_t shard_count = 0;          // 0: all of it, or a share of all that changes
  bool operator==(const TallyEntry&) const = default;
};
// TALLY: control, to who understands it: what members have done of which it may have no record (gone before it came). One that asks has no
// entries; it is answered by one with entries if the other could tell something else.
struct Tally {
  std::uint64_t digest = 0;               // sum over all entries that the sender could tell
  bool asks = false;
  NodeId begin;                           // wanted, or told, are entries of this id and those above it
  std::vector<TallyEntry> entries;        // <= 400, by id; that many: there may be more
  bool operator==(const Tally&) const = default;
};

// LEAVE: control, to every member, once, signed: this node goes and must not be shown as failed.
struct Leave {
  MemberRecord record;               // state = kLeft
  bool operator==(const Leave&) const = default;
};

// FINAL: control, from the declarer (lowest live id) to every member, repeated with each beat until all have it.
struct Final {
  NodeId declarer;
  Hash256 run_digest;
  Hash256 root;                      // BLAKE2b over the manifest (item MANIFEST of the state transfer)
  Samples progress = 0;
  Signature signature{};             // by the declarer over the fields above
  bool operator==(const Final&) const = default;
};

// ---- bulk plane -----------------------------------------------------------------------------------------------

enum class Slot : std::uint8_t { kParameters = 0, kTracking = 1, kCentre = 2, kCompressed = 3 };

// PROPOSE: initiator -> responder. `chunk_count` CHUNKs of stream kProposal follow. attempt > 0 = asking again:
// the responder replays RESULT, answers ABORTED, or sends CREDIT with what it has.
struct Propose {
  ExchangeId e;
  std::uint32_t attempt = 0;
  FragmentIndex fragment = 0;
  Slot slot = Slot::kParameters;
  CodecId codec = CodecId::kFp32;
  double weight = 0.5;               // 0 < w <= 1/2
  double push_sum = 1.0;             // reserved
  std::uint64_t payload_bytes = 0;   // of the whole proposal; 0 = only the id is left (asking again after the snapshot
                                     // has been released): what is not committed is aborted for good
  std::uint32_t chunk_bytes = 0;     // every chunk but the last has this size; <= 1 MiB
  std::uint64_t lowest_open = 0;     // every sequence of e's incarnation below it is closed
  Hash256 run_digest;                // BLAKE2b(cluster, run id)
  Hash256 schema_hash;
  Step depth = 0;                    // of the initiator's model, as in its record
  Step step = 0;                     // initiator's own
  bool operator==(const Propose&) const = default;
};

enum class Stream : std::uint8_t { kProposal = 0, kResult = 1, kState = 2 };

// CHUNK: the only message with a payload. Costs its payload + about 100 bytes.
struct Chunk {
  ExchangeId e;                      // or the transfer's id
  Stream stream = Stream::kProposal;
  std::uint32_t index = 0;
  bool operator==(const Chunk&) const = default;
};

// CREDIT: receiver of chunks -> sender, after each chunk taken and when asked: all it has of this stream.
// Idempotent: a lost or reordered one does no harm.
struct Credit {
  ExchangeId e;
  Stream stream = Stream::kProposal;
  std::vector<std::uint64_t> received;  // bit i of word i/64 = chunk i is here; <= 64 words
  bool operator==(const Credit&) const = default;
};

// RESULT: responder -> initiator after the commit. `payload_bytes` of stream kResult follow.
struct ResultMessage {
  ExchangeId e;
  FragmentIndex fragment = 0;
  CodecId codec = CodecId::kFp32;
  std::uint64_t payload_bytes = 0;
  std::uint32_t chunk_bytes = 0;
  Step depth = 0;                    // of the responder's model, as in its record
  Step step = 0;                     // responder's own
  double distance_squared = 0.0;     // |R_B - R_A|^2 over this fragment
  double norm_squared = 0.0;         // |(R_A + R_B) / 2|^2
  bool operator==(const ResultMessage&) const = default;
};

// ACK: initiator -> responder: e is applied (or was closed); the ledger entry can go.
struct Ack {
  ExchangeId e;
  std::uint64_t lowest_open = 0;     // as in PROPOSE
  bool operator==(const Ack&) const = default;
};

// BUSY: responder -> initiator: no budget; nothing was committed and nothing will be.
struct Busy {
  ExchangeId e;
  std::uint32_t retry_after_ms = 0;
  bool operator==(const Busy&) const = default;
};

enum class AbortReason : std::uint16_t {
  kUnknown = 0,       // never heard of it, or no longer
  kCrossing = 1,      // both proposed this fragment to each other; the other one goes on
  kLag = 2,           // depths too far apart: adopt instead
  kNonFinite = 3,
  kMismatch = 4,      // run, schema, fragment, size or codec
  kNotReady = 5,      // not joined, or finishing/complete/leaving
  kWithdrawn = 6,     // initiator gave it up (initiator -> responder)
};
// ABORTED: responder -> initiator: e was not committed and never will be. Also initiator -> responder (kWithdrawn)
// to drop a half-sent proposal.
struct Aborted {
  ExchangeId e;
  AbortReason reason = AbortReason::kUnknown;
  bool operator==(const Aborted&) const = default;
};

enum class StateItem : std::uint8_t {
  kManifest = 0,   // hashes of all items of a declared final state: u64 count, then 32 bytes each
  kFragment = 1,   // fp32 values of one fragment (index = fragment)
  kIntegers = 2,   // integer buffers, int64 each, schema order
  kOptimizer = 3,  // index-th piece (fragment_bytes each) of the optimiser's serialised state
};

// STATE_REQUEST: fetcher -> donor. One item; many may be open. `e` names the transfer (initiator = fetcher).
struct StateRequest {
  ExchangeId e;
  StateItem item = StateItem::kFragment;
  std::uint32_t index = 0;
  bool final_state = false;          // of the declared final state, not the running one
  Hash256 run_digest;
  Hash256 schema_hash;
  bool operator==(const StateRequest&) const = default;
};

// STATE_HEADER: donor -> fetcher; CHUNKs of stream kState follow. Refusals are ABORTED or BUSY.
struct StateHeader {
  ExchangeId e;
  StateItem item = StateItem::kFragment;
  std::uint32_t index = 0;
  std::uint64_t payload_bytes = 0;
  std::uint32_t chunk_bytes = 0;
  Hash256 hash;                      // of the item's bytes
  std::uint32_t optimizer_pieces = 0;
  Step optimizer_step = 0;
  Samples cluster_samples = 0;       // of all nodes together, as the donor knows them
  bool operator==(const StateHeader&) const = default;
};

using Message = std::variant<Hello, Challenge, Welcome, Reject, Leave, Final, Propose, Chunk, Credit, ResultMessage,
                             Ack, Busy, Aborted, StateRequest, StateHeader, Ping, Pong, PingRequest, Nack, Gossip, Digest,
                             Sync, View, DialBack, Tally>;

// Lower-case words for people and JSON: "training", "alive".
const char* name_of(RunState state);
const char* name_of(MemberState state);
// Name as in this file's comments ("PROPOSE"), for logs and metrics.
const char* name_of(const Message& message);
// The plane a message belongs to. HELLO, CHALLENGE, WELCOME and REJECT are legal on both (std::nullopt-like: `any`).
struct PlaneRule { bool control = false; bool bulk = false; };
PlaneRule planes_of(const Message& message);

}  // namespace kith::schema
