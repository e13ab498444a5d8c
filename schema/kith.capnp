# The wire format of kith: one Envelope is the header frame of every message. schema/messages.h has the same
# messages as plain structs, in the same order but for the retired; schema/codec_*.cc translate, and are the only code that sees this file.
#
# How this file may change, for ever:
#   - a field's or enumerant's number (@n) is never reused, renumbered or given another type or meaning; one that is used
#     no more keeps its number as `obsoleteN`, is sent as 0 and not read;
#   - a new field goes to the end of its struct, and zero must mean "as before";
#   - an unknown member of Envelope's union, or an unknown enumerant, is counted and ignored by the receiver (but an
#     unknown RejectCode or AbortReason is read as `unknown`, because the message says enough without it).
# What breaks these rules raises kProtocolVersion in messages.h.
#
# Encoding on the wire: one segment, not packed, at most 64 KiB; receivers refuse anything else. Texts are UTF-8
# without control characters. The limits named here are enforced by the decoder, before anything is copied.
# Sizes in brackets: bytes of the whole encoded header with typical texts, as printed by schema_test.

@0xd9f4a1b7c3e85216;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kith::schema::wire");

struct Envelope {
  union {
    # Connection, either plane.
    hello @0 :Hello;
    challenge @1 :Challenge;
    welcome @2 :Welcome;
    reject @3 :Reject;
    # Control plane.
    heartbeat @4 :Heartbeat;  # retired: never sent; a receiver ignores and counts it like an unknown message
    leave @5 :Leave;
    final @6 :Final;
    # Bulk plane.
    propose @7 :Propose;
    chunk @8 :Chunk;
    credit @9 :Credit;
    result @10 :ResultMessage;
    ack @11 :Ack;
    busy @12 :Busy;
    aborted @13 :Aborted;
    stateRequest @14 :StateRequest;
    stateHeader @15 :StateHeader;
    # Control plane again: membership.
    ping @16 :Ping;
    pong @17 :Pong;
    pingRequest @18 :PingRequest;
    nack @19 :Nack;
    gossip @20 :Gossip;
    digest @21 :Digest;
    sync @22 :Sync;
    view @23 :View;
    dialBack @24 :DialBack;
    tally @25 :Tally;
  }
}

# ---- building blocks ------------------------------------------------------------------------------------------

struct Bytes32 {
  # 32 bytes of fixed length (node id, hash, nonce, key): byte i is bits 8*(i%8) and up of word i/8. A struct and not
  # Data, so that there is no length to lie about. An absent one is all zero.
  w0 @0 :UInt64;
  w1 @1 :UInt64;
  w2 @2 :UInt64;
  w3 @3 :UInt64;
}

struct Bytes64 {
  # 64 bytes (Ed25519 signature), the same way.
  w0 @0 :UInt64;
  w1 @1 :UInt64;
  w2 @2 :UInt64;
  w3 @3 :UInt64;
  w4 @4 :UInt64;
  w5 @5 :UInt64;
  w6 @6 :UInt64;
  w7 @7 :UInt64;
}

struct ExchangeId {
  # One exchange (or one item of a state transfer); never reused.
  initiator0 @0 :UInt64;    # the initiator's node id, word by word as in Bytes32
  initiator1 @1 :UInt64;
  initiator2 @2 :UInt64;
  initiator3 @3 :UInt64;
  incarnation @4 :UInt64;   # the initiator's, when it opened the exchange
  sequence @5 :UInt64;      # running number within that incarnation, from 1
}

struct Fact {
  # A name and value that members must agree on, for instance "run.seed" = "7".
  name @0 :Text;    # <= 64 bytes
  value @1 :Text;   # <= 512 bytes
}

enum MemberState {
  # At equal incarnation the larger one wins.
  alive @0;
  suspect @1;
  dead @2;
  left @3;
}

enum RunState {
  # What the node is doing.
  waiting @0;
  joining @1;
  training @2;
  finishing @3;
  complete @4;
  leaving @5;
}

struct MemberRecord {
  # What a node says of itself, or last said. The signature covers all fields but `state` and itself: see
  # signing_hash in messages.h. [about 440 bytes]
  id @0 :Bytes32;                # Ed25519 public key
  incarnation @1 :UInt64;        # boot counter << 32 | refutation counter
  version @2 :UInt64;            # rises with each change within one incarnation
  state @3 :MemberState;         # not signed: others may say suspect or dead
  runState @4 :RunState;
  converged @5 :Bool;            # finishing: last distances below the bound for every fragment
  name @6 :Text;                 # <= 128 bytes
  controlAddress @7 :Text;       # host:port as others dial it, <= 256 bytes
  bulkAddress @8 :Text;          # <= 256 bytes
  httpAddress @9 :Text;          # <= 256 bytes
  step @10 :UInt64;              # optimiser steps done by this node
  samples @11 :UInt64;           # samples trained by this node; never falls
  loss @12 :Float64;             # running training loss; NaN: unknown
  accuracy @13 :Float64;         # last test accuracy, 0 to 1; NaN: unknown
  learningRate @14 :Float64;     # finite, >= 0
  stepsPerSecond @15 :Float64;   # finite, >= 0
  dataFingerprint @16 :Bytes32;  # of the whole training file, not of the shard
  dataSamples @17 :UInt64;       # samples in the whole file
  shardSamples @18 :UInt64;      # of those, how many this node trains on
  shardIndex @19 :UInt32;        # from 1; 0: all; <= shardCount
  shardCount @20 :UInt32;
  transportKey @21 :Bytes32;     # reserved: a transport key per node
  keyEpoch @22 :UInt32;          # reserved: rotation of the cluster key
  versionText @23 :Text;         # build version, <= 64 bytes
  signature @24 :Bytes64;        # Ed25519 by `id`
  bootNonce @25 :UInt64;         # random per start: tells two processes with one key and boot counter apart
  left @26 :Bool;                # LEAVE was said: the last record of this life
  sharesData @27 :Bool;          # trains on its share among the members with the same data fingerprint
  depth @28 :UInt64;             # optimiser steps that its model contains in sequence
}

# ---- connection: either plane ---------------------------------------------------------------------------------

enum Plane {
  control @0;
  bulk @1;
}

struct Hello {
  # Dialler -> listener, either plane, opens every connection. Sent twice: with peerNonce zero (answered by
  # CHALLENGE), then with the challenge's nonce and the signature. [about 800 bytes, and 50 a fact]
  plane @0 :Plane;            # the plane of this connection
  protocolMin @1 :UInt32;     # 1 <= protocolMin <= protocolMax
  protocolMax @2 :UInt32;
  cluster @3 :Text;           # <= 128 bytes
  runId @4 :Text;             # <= 128 bytes
  schemaHash @5 :Bytes32;     # of the model schema
  facts @6 :List(Fact);       # <= 64; control plane only
  record @7 :MemberRecord;    # the dialler's own
  nonce @8 :Bytes32;          # the dialler's
  peerNonce @9 :Bytes32;      # the listener's, from CHALLENGE; zero at first
  lowestOpen @10 :UInt64;     # lowest open exchange sequence of this incarnation
  signature @11 :Bytes64;     # over BLAKE2b("kith hello", plane, nonce, peerNonce, id); zero at first
  probe @12 :Bool;            # a diagnosis (`kith doctor`), no member: answered and never bound; its run is not judged
  dialBackPort @13 :UInt16;   # of a probe: the listener tries to reach this port at the address the probe came from,
                              # and tells by DIAL_BACK; 0: no
  tallies @14 :Bool;          # understands TALLY
}

struct Challenge {
  # Listener -> dialler, either plane; smaller than HELLO, so that nothing is amplified before the proof. [112 bytes]
  nonce @0 :Bytes32;       # the listener's
  peerNonce @1 :Bytes32;   # the dialler's, echoed
}

struct Welcome {
  # Listener -> dialler, either plane, after a proven HELLO; on bulk without records and facts.
  # [about 700 bytes + 440 a record; records are left out from the end when 64 KiB would be exceeded]
  record @0 :MemberRecord;           # the listener's own
  records @1 :List(MemberRecord);    # <= 64 others
  facts @2 :List(Fact);              # <= 64, the listener's
  obsolete3 @3 :UInt64;              # retired: sent as 0, not read
  seenIncarnation @4 :UInt64;        # highest incarnation held for the dialler, which must be above
  nonce @5 :Bytes32;                 # the listener's
  peerNonce @6 :Bytes32;             # the dialler's
  signature @7 :Bytes64;             # over BLAKE2b("kith welcome", plane, nonce, peerNonce, id)
  about @8 :About;                   # to a probe only
  tallies @9 :Bool;                  # understands TALLY
}

struct About {
  # What a probe is told of the node that it asks.
  cluster @0 :Text;          # <= 128 bytes
  runId @1 :Text;            # <= 128 bytes
  schemaHash @2 :Bytes32;
  wallSeconds @3 :Float64;   # its clock, since 1970; finite
}

enum DialBackOutcome {
  unknown @0;
  reached @1;      # something listens there
  refused @2;      # the machine answered that nothing does
  silent @3;       # no answer in time
  unreachable @4;  # no way there
  busy @5;         # not tried: too many such requests
}

struct DialBack {
  # Listener -> dialler, control plane: what came of a probe's dialBackPort, once, after WELCOME. [112 bytes]
  nonce @0 :Bytes32;             # of the probe's HELLO
  outcome @1 :DialBackOutcome;
  address @2 :Text;              # that was tried; <= 256 bytes
}

enum RejectCode {
  unknown @0;
  protocol @1;
  cluster @2;
  run @3;
  schema @4;
  facts @5;
  identity @6;
  signature @7;
  full @8;
  self @9;
  notReady @10;
}

struct Reject {
  # Listener -> dialler, either plane. [about 140 bytes]
  code @0 :RejectCode;
  detail @1 :Text;               # names both values; <= 1024 bytes
  id @2 :Bytes32;                # who refuses
  seenIncarnation @3 :UInt64;    # highest incarnation held for the dialler
}

# ---- control plane --------------------------------------------------------------------------------------------

struct Heartbeat {
  # Retired: SWIM (PING and what follows) took its place. It keeps its number and fields, so that nothing else takes
  # them; never sent, and a receiver ignores and counts it like an unknown message.
  record @0 :MemberRecord;           # the sender's own
  records @1 :List(MemberRecord);    # <= 32 others, those that changed last first
  echo @2 :UInt64;                   # sender's clock in ns
  echoReply @3 :UInt64;              # the receiver's last echo, returned: round-trip times
  progress @4 :UInt64;               # samples: cluster progress that the sender knows
  echoHold @5 :UInt64;               # ns for which the sender held echoReply before returning it
}

struct Accusation {
  # "No answer from `subject` at this incarnation", signed by who had none. Void as soon as the subject shows a higher
  # incarnation. [160 bytes within a list]
  subject @0 :Bytes32;               # not zero
  incarnation @1 :UInt64;            # the subject's
  accuser @2 :Bytes32;               # not zero, not the subject
  signature @3 :Bytes64;             # by the accuser: see accusation_hash in messages.h
}

struct News {
  # What every membership message carries besides its purpose. [40 bytes + about 440 a record + 160 an accusation;
  # records are left out from the end when the message would exceed 64 KiB]
  records @0 :List(MemberRecord);    # <= 64, the sender's own first
  accusations @1 :List(Accusation);  # <= 64
  obsolete2 @2 :UInt64;              # retired: sent as 0, not read
}

struct Ping {
  # Control: prober -> subject, answered by PONG at once. [48 bytes + news]
  sequence @0 :UInt64;               # the prober's
  news @1 :News;
}

struct Pong {
  # Control: subject -> prober, or helper -> requester (then `subject` is not the sender): it answered.
  # [88 bytes + news]
  sequence @0 :UInt64;               # of the PING or PING_REQUEST
  subject @1 :Bytes32;
  news @2 :News;
}

struct PingRequest {
  # Control: requester -> helper: ping `subject` for me; answered by PONG or, in time, by NACK. [88 bytes + news]
  sequence @0 :UInt64;               # the requester's
  subject @1 :Bytes32;
  news @2 :News;
}

struct Nack {
  # Control: helper -> requester: I am well, but `subject` did not answer me. [88 bytes + news]
  sequence @0 :UInt64;               # of the PING_REQUEST
  subject @1 :Bytes32;
  news @2 :News;
}

struct Gossip {
  # Control: to a few random members, each gossip interval. [40 bytes + news]
  news @0 :News;
}

struct Digest {
  # Control: to one random member, each sync interval; answered by SYNC if something differs. [560 bytes]
  buckets @0 :List(UInt64);          # 64, by the first 6 bits of the id: sum of hashes of (id, incarnation) of its living
  obsolete1 @1 :UInt64;              # retired: sent as 0, not read
}

struct DigestEntry {
  # One record that the sender holds. [56 bytes within a list]
  id0 @0 :UInt64;                    # the id, word by word as in Bytes32
  id1 @1 :UInt64;
  id2 @2 :UInt64;
  id3 @3 :UInt64;
  incarnation @4 :UInt64;
  version @5 :UInt64;
  state @6 :MemberState;
}

struct Sync {
  # Control: answer to DIGEST, and to a SYNC that lacks something: all that the sender holds in `buckets`.
  # [80 bytes + 4 a bucket + 56 an entry + 32 a wanted id + news]
  buckets @0 :List(UInt32);          # <= 64, each < 64
  entries @1 :List(DigestEntry);     # <= 512
  wanted @2 :List(Bytes32);          # <= 64 ids, answered with a GOSSIP
  news @3 :News;
}

enum ViewKind {
  unknown @0;                        # never sent
  join @1;
  forwardJoin @2;
  neighbour @3;
  neighbourUrgent @4;
  accepted @5;
  refused @6;
  disconnect @7;
  shuffle @8;
  shuffleReply @9;
}

struct View {
  # Control: upkeep of the partial views of large clusters. [about 100 bytes + 440 a record]
  kind @0 :ViewKind;
  ttl @1 :UInt32;                    # hops left of a random walk; <= 16
  sequence @2 :UInt64;               # the origin's
  origin @3 :Bytes32;                # who joins or shuffles
  records @4 :List(MemberRecord);    # <= 32: the joiner's, or a sample of the sender's views
}

struct TallyEntry {
  # What one member has done, and the data that it held. [104 bytes within a list]
  id0 @0 :UInt64;                    # the id, word by word as in Bytes32
  id1 @1 :UInt64;
  id2 @2 :UInt64;
  id3 @3 :UInt64;
  samples @4 :UInt64;
  steps @5 :UInt64;
  data0 @6 :UInt64;                  # the data's fingerprint, likewise
  data1 @7 :UInt64;
  data2 @8 :UInt64;
  data3 @9 :UInt64;
  dataSamples @10 :UInt64;           # of the whole file; 0: unknown, and so is all about data
  shardSamples @11 :UInt64;
  shardIndex @12 :UInt32;
  shardCount @13 :UInt32;            # 0: all of it, or a share of all that changes
}

struct Tally {
  # Control, to who understands it (HELLO, WELCOME): what members have done of which it may have no record. [104 bytes + 104 an entry]
  digest @0 :UInt64;                 # sum over all entries that the sender could tell
  asks @1 :Bool;                     # to be answered by a TALLY with entries, if there the digest differs
  begin @2 :Bytes32;                 # wanted, or told, are entries of this id and those above it
  entries @3 :List(TallyEntry);      # <= 400, by id; that many: there may be more
}

struct Leave {
  # Control: to every member, once; the node goes and must not be shown as failed. [about 480 bytes]
  record @0 :MemberRecord;           # state = left
}

struct Final {
  # Control: from the declarer (lowest live id) to every member, with each beat until all have it. [232 bytes]
  declarer @0 :Bytes32;
  runDigest @1 :Bytes32;
  root @2 :Bytes32;                  # BLAKE2b over the manifest of the final state
  progress @3 :UInt64;               # samples
  signature @4 :Bytes64;             # by the declarer over the fields above
}

# ---- bulk plane -----------------------------------------------------------------------------------------------

enum Slot {
  # What kind of value a fragment belongs to; only `parameters` is used yet.
  parameters @0;
  tracking @1;
  centre @2;
  compressed @3;
}

enum Codec {
  # How values travel; the number is in checkpoints too.
  fp32 @0;
  bf16 @1;
}

enum Stream {
  # Which stream of chunks of an exchange.
  proposal @0;
  result @1;
  state @2;
}

struct Propose {
  # Bulk: initiator -> responder; chunks of stream `proposal` follow. [232 bytes]
  e @0 :ExchangeId;
  attempt @1 :UInt32;        # > 0: asking again
  fragment @2 :UInt32;
  slot @3 :Slot;
  codec @4 :Codec;
  weight @5 :Float64;        # 0 < weight <= 1/2
  pushSum @6 :Float64;       # reserved; finite
  payloadBytes @7 :UInt64;   # >= 1; at most 4096 chunks
  chunkBytes @8 :UInt32;     # 1 to 1 MiB; every chunk but the last has this size
  lowestOpen @9 :UInt64;     # every sequence of this incarnation below it is closed
  runDigest @10 :Bytes32;    # BLAKE2b(cluster, run id)
  schemaHash @11 :Bytes32;   # of the model schema
  depth @12 :UInt64;         # of the initiator's model, in steps
  step @13 :UInt64;          # initiator's own
}

struct Chunk {
  # Bulk, either direction: the only message whose second frame is not empty. [96 bytes + payload]
  e @0 :ExchangeId;          # exchange or transfer
  stream @1 :Stream;
  index @2 :UInt32;          # < 4096
}

struct Credit {
  # Bulk: receiver of chunks -> sender, after each chunk and when asked. Idempotent. [104 bytes + 8 per 64 chunks]
  e @0 :ExchangeId;
  stream @1 :Stream;
  received @2 :List(UInt64); # <= 64 words; bit i of word i/64: chunk i is here
}

struct ResultMessage {
  # Bulk: responder -> initiator, after the commit; chunks of stream `result` follow. [144 bytes]
  e @0 :ExchangeId;
  fragment @1 :UInt32;
  codec @2 :Codec;
  payloadBytes @3 :UInt64;      # as in Propose
  chunkBytes @4 :UInt32;
  depth @5 :UInt64;             # of the responder's model, in steps
  step @6 :UInt64;              # responder's own
  distanceSquared @7 :Float64;  # |R_B - R_A|^2 over this fragment; finite, >= 0
  normSquared @8 :Float64;      # |(R_A + R_B) / 2|^2; finite, >= 0
}

struct Ack {
  # Bulk: initiator -> responder: e is applied or was closed; the ledger entry can go. [96 bytes]
  e @0 :ExchangeId;
  lowestOpen @1 :UInt64;        # every sequence of this incarnation below it is closed
}

struct Busy {
  # Bulk: responder -> initiator: no budget; nothing was committed and nothing will be. [96 bytes]
  e @0 :ExchangeId;
  retryAfterMs @1 :UInt32;
}

enum AbortReason {
  unknown @0;      # never heard of it, or no longer
  crossing @1;     # both proposed this fragment to each other; the other one goes on
  lag @2;          # depths too far apart: adopt instead
  nonFinite @3;
  mismatch @4;     # run, schema, fragment, size or codec
  notReady @5;     # not joined, or finishing, complete, leaving
  withdrawn @6;    # the initiator gave it up
}

struct Aborted {
  # Bulk: responder -> initiator: e was not committed and never will be; or initiator -> responder: withdrawn. [96 bytes]
  e @0 :ExchangeId;
  reason @1 :AbortReason;
}

enum StateItem {
  manifest @0;     # hashes of all items of a declared final state
  fragment @1;     # fp32 values of one fragment
  integers @2;     # integer buffers, int64 each, schema order
  optimizer @3;    # a piece of the optimiser's serialised state
}

struct StateRequest {
  # Bulk: fetcher -> donor, one item; many may be open. [176 bytes]
  e @0 :ExchangeId;             # names the transfer; its initiator is the fetcher
  item @1 :StateItem;
  index @2 :UInt32;             # of the fragment or piece
  finalState @3 :Bool;          # of the declared final state, not the running one
  runDigest @4 :Bytes32;
  schemaHash @5 :Bytes32;
}

struct StateHeader {
  # Bulk: donor -> fetcher; chunks of stream `state` follow. [168 bytes]
  e @0 :ExchangeId;
  item @1 :StateItem;
  index @2 :UInt32;
  payloadBytes @3 :UInt64;      # >= 0 (a model may have no integer buffers); at most 4096 chunks
  chunkBytes @4 :UInt32;        # 1 to 1 MiB
  hash @5 :Bytes32;             # BLAKE2b-256 of the item's bytes
  optimizerPieces @6 :UInt32;
  optimizerStep @7 :UInt64;
  clusterSamples @8 :UInt64;    # of all nodes together, as the donor knows them
}
