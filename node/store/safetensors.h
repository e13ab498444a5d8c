// safetensors files (format of huggingface/safetensors: u64 LE header length, JSON header,
// contiguous bytes without holes, string-only __metadata__), written as a stream and never half:
// temporary name, fsync, rename, fsync of the folder.
//
// Every file of ours carries `content_blake2b` in its metadata: BLAKE2b-256 over the whole file
// with these 64 characters read as zeros. The header is written first with the zeros and patched in
// place before the rename, so that writing stays one pass. Thread: one per object.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace kith::node {

// Metadata key of the content hash.
inline constexpr char kContentHashKey[] = "content_blake2b";

struct TensorEntry {
  std::string name;
  std::string dtype;  // "F32" | "I64" | "U8" | "U64"
  std::vector<std::uint64_t> shape;
  [[nodiscard]] std::uint64_t byte_count() const;
};

class SafetensorsWriter {
 public:
  // Tensors in the order in which their bytes will be appended.
  static Result<SafetensorsWriter> create(const std::string& path, std::vector<TensorEntry> tensors,
                                          std::map<std::string, std::string> metadata);
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();  // without commit(): the temporary file is removed
  Status append(std::span<const std::byte> bytes);
  // Checks that every byte came; then fsync, rename, fsync of the folder. Passes kCheckpointWritten
  // and -Renamed.
  Status commit();

 private:
  struct Impl;
  explicit SafetensorsWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class SafetensorsFile {
 public:
  // Maps and validates: header length <= 100 MiB and <= file, JSON, offsets without holes or
  // overlap, sizes = shapes. kNotFound, or kCorrupt with what is wrong.
  static Result<SafetensorsFile> open(const std::string& path);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();
  [[nodiscard]] const std::vector<TensorEntry>& tensors() const;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const;
  [[nodiscard]] Result<std::span<const std::byte>> bytes(const std::string& name) const;
  [[nodiscard]] const TensorEntry* find(const std::string& name) const;  // null: absent
  // Reads everything. kCorrupt when content_blake2b is not there or differs.
  [[nodiscard]] Status verify_content() const;

 private:
  struct Impl;
  explicit SafetensorsFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::node
