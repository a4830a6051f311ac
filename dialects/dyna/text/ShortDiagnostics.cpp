//===- ShortDiagnostics.cpp - Limits the length of diagnostics ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/text/ShortDiagnostics.h"
#include "runtime/base/text/Printable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::dyna;
using llvm::SMDiagnostic;
using llvm::SourceMgr;

/// Shortens `line` around `column`, counted from 0, which becomes that of the
/// result.
static std::string shorten(StringRef line, int &column) {
  if (line.size() <= kMaxShownLine)
    return line.str();
  constexpr size_t before = kMaxShownLine / 3;
  const auto at = std::min<size_t>(std::max(column, 0), line.size());
  auto isWithin = [&](size_t i) { // inside a character
    return i < line.size() && (line[i] & 0xc0) == 0x80;
  };
  size_t begin = at < before ? 0 : at - before;
  size_t end = std::min(begin + kMaxShownLine, line.size());
  while (isWithin(begin))
    ++begin;
  while (isWithin(end))
    ++end;
  std::string text = begin > 0 ? "..." : "";
  column = static_cast<int>(text.size() + at - begin);
  text += line.slice(begin, end);
  return text + (end < line.size() ? "..." : "");
}

/// Prints as SMDiagnostic does, but with the place in the file above a part of
/// its line.
static void printPart(StringRef file, int line, int column,
                      SourceMgr::DiagKind kind, StringRef message,
                      StringRef contents) {
  static constexpr StringLiteral kinds[] = {"error", "warning", "remark",
                                            "note"};
  llvm::errs() << file;
  if (line > 0)
    llvm::errs() << ':' << line << ':' << column + 1;
  llvm::errs() << ": " << kinds[kind] << ": "
               << ::dyna::excerpt(message, ::dyna::kMostMessageBytes) << '\n';
  if (contents.empty())
    return;
  std::string shown = shorten(contents, column);
  llvm::errs() << shown << '\n'
               << std::string(std::max(column, 0), ' ') << "^\n";
}

void mlir::dyna::shortenDiagnostics(SourceMgr &sources) {
  sources.setDiagHandler([](const SMDiagnostic &said, void *) {
    if (said.getLineContents().size() <= kMaxShownLine &&
        said.getMessage().size() <= ::dyna::kMostMessageBytes)
      return said.print(nullptr, llvm::errs());
    printPart(said.getFilename(), said.getLineNo(), said.getColumnNo(),
              said.getKind(), said.getMessage(), said.getLineContents());
  });
}

bool mlir::dyna::hasLongLine(StringRef text) {
  for (StringRef line : llvm::split(text, '\n'))
    if (line.size() > ::dyna::kMostMessageBytes)
      return true;
  return false;
}

/// Returns the line with that number, from 1; empty if there is none.
static StringRef lineOf(StringRef text, unsigned number) {
  for (; number > 1 && !text.empty(); --number)
    text = text.split('\n').second;
  return text.split('\n').first;
}

static SourceMgr::DiagKind kindOf(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return SourceMgr::DK_Error;
  case DiagnosticSeverity::Warning:
    return SourceMgr::DK_Warning;
  case DiagnosticSeverity::Remark:
    return SourceMgr::DK_Remark;
  case DiagnosticSeverity::Note:
    return SourceMgr::DK_Note;
  }
  return SourceMgr::DK_Error;
}

LogicalResult mlir::dyna::printShort(Diagnostic &diagnostic,
                                     llvm::MemoryBufferRef text) {
  auto print = [&](Diagnostic &said, bool onlyLong) {
    auto place = dyn_cast<FileLineColLoc>(said.getLocation());
    StringRef line = place && place.getFilename() == text.getBufferIdentifier()
                         ? lineOf(text.getBuffer(), place.getLine())
                         : "";
    std::string message = said.str();
    if (onlyLong && line.size() <= kMaxShownLine &&
        message.size() <= ::dyna::kMostMessageBytes)
      return failure();
    printPart(place ? place.getFilename().getValue()
                    : text.getBufferIdentifier(),
              place ? static_cast<int>(place.getLine()) : -1,
              place ? static_cast<int>(place.getColumn()) - 1 : -1,
              kindOf(said.getSeverity()), message, line);
    return success();
  };
  if (failed(print(diagnostic, /*onlyLong=*/true)))
    return failure();
  for (Diagnostic &note : diagnostic.getNotes())
    (void)print(note, /*onlyLong=*/false);
  return success();
}
