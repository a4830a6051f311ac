//===- LayoutText.cpp - Prints and parses layouts -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     layout ::= `[` (parts (`,` parts)*)? `]` (`partial` parts)?
//     parts  ::= `[` (part (`,` part)*)? `]`
//     part   ::= axis-name (`:` size `/` stride)?
//
//===----------------------------------------------------------------------===//

#include "runtime/layout/Layout.h"

#include <cctype>
#include <cstdlib>

namespace dyna {

std::string describePart(const Mesh &mesh, const AxisPart &part) {
  const std::string &name = mesh.axes()[part.axis].name;
  if (part == mesh.wholeAxis(part.axis))
    return name;
  return name + ":" + std::to_string(part.size) + "/" +
         std::to_string(part.stride);
}

std::string describeParts(const Mesh &mesh, const AxisParts &parts) {
  std::string text;
  for (const AxisPart &part : parts)
    text += (text.empty() ? "" : ", ") + describePart(mesh, part);
  return "[" + text + "]";
}

std::string describeLayout(const Mesh &mesh, const Layout &layout) {
  std::string text;
  for (const AxisParts &parts : layout.dims)
    text += (text.empty() ? "" : ", ") + describeParts(mesh, parts);
  text = "[" + text + "]";
  if (!layout.partial.empty())
    text += " partial " + describeParts(mesh, layout.partial);
  return text;
}

namespace {

class LayoutParser {
public:
  LayoutParser(const Mesh &mesh, const std::string &text)
      : mesh_(mesh), text_(text) {}

  StatusOr<Layout> parse() {
    Layout layout;
    DYNA_RETURN_IF_ERROR(parseList([&]() -> Status {
      layout.dims.emplace_back();
      return parseParts(layout.dims.back());
    }));
    std::string word = takeWord();
    if (word == "partial")
      DYNA_RETURN_IF_ERROR(parseParts(layout.partial));
    skipBlanks();
    if (at_ != text_.size() || (!word.empty() && word != "partial"))
      return expected("'partial' or the end");
    DYNA_RETURN_IF_ERROR(checkLayout(mesh_, layout, layout.dims.size()));
    return layout;
  }

private:
  Status expected(const std::string &what) const {
    return Status::invalidArgument("layout '" + text_ + "': expected " + what +
                                   " at character " + std::to_string(at_ + 1));
  }

  void skipBlanks() {
    while (at_ < text_.size() && std::isspace((unsigned char)text_[at_]))
      ++at_;
  }

  bool take(char c) {
    skipBlanks();
    if (at_ == text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  /// Takes letters, digits and underscores; empty if there are none.
  std::string takeWord() {
    skipBlanks();
    size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum((unsigned char)text_[at_]) || text_[at_] == '_'))
      ++at_;
    return text_.substr(start, at_ - start);
  }

  template <typename Element> Status parseList(Element element) {
    if (!take('['))
      return expected("'['");
    if (take(']'))
      return Status::ok();
    do {
      DYNA_RETURN_IF_ERROR(element());
    } while (take(','));
    return take(']') ? Status::ok() : expected("',' or ']'");
  }

  Status parseNumber(int64_t &number) {
    std::string digits = takeWord();
    // 18 digits always fit; checkLayout rejects what is too large.
    if (digits.empty() || digits.size() > 18 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      return expected("a number");
    number = std::strtoll(digits.c_str(), nullptr, 10);
    return Status::ok();
  }

  Status parseParts(AxisParts &parts) {
    return parseList([&]() -> Status {
      std::string name = takeWord();
      if (name.empty())
        return expected("the name of an axis");
      std::optional<int> axis = mesh_.findAxis(name);
      if (!axis)
        return Status::invalidArgument("layout '" + text_ + "' uses axis '" +
                                       name + "'; the mesh is " +
                                       mesh_.describe());
      parts.push_back(mesh_.wholeAxis(*axis));
      if (!take(':'))
        return Status::ok();
      DYNA_RETURN_IF_ERROR(parseNumber(parts.back().size));
      if (!take('/'))
        return expected("'/'");
      return parseNumber(parts.back().stride);
    });
  }

  const Mesh &mesh_;
  const std::string &text_;
  size_t at_ = 0;
};

} // namespace

StatusOr<Layout> parseLayout(const Mesh &mesh, const std::string &text) {
  return LayoutParser(mesh, text).parse();
}

} // namespace dyna
