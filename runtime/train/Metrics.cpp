//===- Metrics.cpp - What is written about each step ----------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Metrics.h"

#include "runtime/data/Files.h"
#include "runtime/data/Json.h"
#include "runtime/plan/Text.h"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <optional>
#include <unistd.h>

namespace dyna {

/// The whole lines of the file that do not lie behind `step`.
static StatusOr<std::string> linesUpTo(const std::string &path, int64_t step) {
  StatusOr<std::string> text = readFile(path);
  if (!text.isOk())
    return text;
  std::string kept;
  for (size_t begin = 0; begin < text->size();) {
    size_t end = text->find('\n', begin);
    if (end == std::string::npos)
      break;
    std::string_view line(text->data() + begin, end - begin);
    StatusOr<JsonValue> json = parseJson(line);
    std::optional<int64_t> number =
        json.isOk() ? json->findInteger("step") : std::nullopt;
    if (!number || *number <= step)
      kept.append(line).push_back('\n');
    begin = end + 1;
  }
  return kept;
}

StatusOr<MetricsFile> MetricsFile::open(const std::string &path,
                                        int64_t resumedStep) {
  bool append = resumedStep >= 0;
  std::error_code ignored;
  if (append && std::filesystem::is_regular_file(path, ignored)) {
    StatusOr<std::string> kept = linesUpTo(path, resumedStep);
    if (!kept.isOk())
      return kept.status();
    if (kept->size() != std::filesystem::file_size(path, ignored))
      DYNA_RETURN_IF_ERROR(writeWholeFile(path, *kept));
  }
  MetricsFile metrics;
  metrics.path_ = path;
  metrics.file_.reset(std::fopen(path.c_str(), append ? "a" : "w"));
  if (!metrics.file_)
    return fileFailure("write", path, errno);
  return metrics;
}

/// JSON knows no NaN.
static std::string jsonNumber(double value) {
  return std::isfinite(value) ? formatText("%.17g", value) : "null";
}

Status MetricsFile::write(const StepMetrics &m) {
  double rate = m.seconds > 0 ? static_cast<double>(m.tokens) / m.seconds : 0;
  return writeLine(
      formatText("{\"step\": %lld, \"loss\": %s, \"tokens\": %lld, "
                 "\"targets\": %lld, \"seconds\": %.6f, \"tokens_per_second\": "
                 "%.1f, \"gflops\": %.2f, ",
                 static_cast<long long>(m.step), jsonNumber(m.loss).c_str(),
                 static_cast<long long>(m.tokens),
                 static_cast<long long>(m.targets), m.seconds, rate, m.gflops) +
      formatText("\"learning_rate\": %.17g, \"gradient_norm\": %s, "
                 "\"peak_bytes\": %lld, \"micro_batches\": %lld}",
                 m.learningRate, jsonNumber(m.gradientNorm).c_str(),
                 static_cast<long long>(m.peakBytes),
                 static_cast<long long>(m.microBatches)));
}

Status MetricsFile::writeLine(const std::string &json) {
  if (!file_)
    return Status::ok();
  std::string line = json + "\n";
  errno = 0;
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0)
    return fileFailure("write", path_, errno);
  return Status::ok();
}

/// Where to write what shall become `path`: beside it, to be renamed, or
/// straight into a device or a pipe, which a rename would replace by a file.
static std::string writingPath(const std::string &path) {
  std::error_code ignored;
  auto status = std::filesystem::status(path, ignored);
  bool special = std::filesystem::is_other(status);
  return special ? path : path + ".tmp";
}

Status writeWholeFile(const std::string &path, const std::string &text) {
  std::string temporary = writingPath(path);
  std::FILE *file = std::fopen(temporary.c_str(), "w");
  if (!file)
    return fileFailure("write", temporary, errno);
  errno = 0;
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = errno;
  errno = 0;
  written = std::fclose(file) == 0 && written;
  error = error ? error : errno;
  bool renames = temporary != path;
  if (written &&
      (!renames || std::rename(temporary.c_str(), path.c_str()) == 0))
    return Status::ok();
  Status failure = fileFailure("write", path, error ? error : errno);
  if (renames)
    unlink(temporary.c_str());
  return failure;
}

Status checkWritable(const std::string &path) {
  std::string temporary = writingPath(path);
  if (temporary == path)
    return ::access(path.c_str(), W_OK) == 0
               ? Status::ok()
               : fileFailure("write", path, errno);
  std::FILE *file = std::fopen(temporary.c_str(), "w");
  if (!file)
    return fileFailure("write", path, errno);
  std::fclose(file);
  unlink(temporary.c_str());
  return isDirectory(path) ? Status::invalidArgument(
                                 path + " is a directory, expected a file name")
                           : Status::ok();
}

} // namespace dyna
