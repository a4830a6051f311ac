//===- ReshardSearch.cpp - Searches the cheapest reshard ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parts of both layouts are broken up into *atoms*, factors so fine that
// each part is a list of them; steps move atoms. A state says, per dimension,
// which atoms split it, and which are partial; the rest is replicated.
//
// An axis may be factored in ways that have no common refinement (6 as 2*3 and
// as 3*2). Then both sides keep their own atoms, and those of `to` come in when
// nothing they overlap with is left.
//
//===----------------------------------------------------------------------===//

#include "runtime/layout/Reshard.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace dyna {
namespace {

/// Indices of atoms, major to minor.
using Atoms = std::vector<int>;

struct State {
  std::vector<Atoms> dims;
  Atoms partial; // ascending

  bool operator<(const State &other) const {
    return std::tie(dims, partial) < std::tie(other.dims, other.partial);
  }
  bool operator==(const State &other) const {
    return dims == other.dims && partial == other.partial;
  }
};

struct Move {
  ReshardKind kind;
  Atoms group;
  int dim, toDim;
};

/// Bytes first, then steps.
using Cost = std::pair<int64_t, int64_t>;

struct Node {
  Cost cost;
  const State *parent; // null at the start
  Move move;           // that led here
  bool isDone = false;
};

class ReshardSearch {
public:
  ReshardSearch(const Mesh &mesh, const Layout &from, const Layout &to,
                const Shape &shape, int64_t maxMoves)
      : mesh_(mesh), from_(from), to_(to), shape_(shape), movesLeft_(maxMoves) {
  }

  StatusOr<std::vector<ReshardStep>> run();

private:
  // Atoms.
  std::set<int64_t> cutsOf(const Layout &layout, int axis) const;
  State atomize(const Layout &layout, const Layout &other);
  int internAtom(const AxisPart &atom);
  int64_t sizeOf(const Atoms &atoms) const;
  AxisParts partsOf(const Atoms &atoms) const;
  Layout layoutOf(const State &state) const;

  // Moves.
  bool refines(int dim, const Atoms &outer, const Atoms &inner) const;
  bool isFree(const State &state, int atom) const;
  int64_t sentShare(const State &before, const Move &move) const;
  State apply(State state, const Move &move) const;
  void tryMove(const State &state, const Move &move);
  void expand(const State &state);
  void expandReductions(const State &state, Atoms &chosen);
  void expandDimension(const State &state, int dim);

  bool search();
  std::vector<Move> foundMoves() const;
  std::vector<Move> gatherAndCut() const;
  std::vector<ReshardStep> makeSteps(const std::vector<Move> &moves) const;

  const Mesh &mesh_;
  const Layout &from_, &to_;
  const Shape &shape_;
  int64_t movesLeft_;

  AxisParts atoms_;
  State start_, goal_;
  Atoms reducible_; // partial at the start and not in the end
  std::map<State, Node> nodes_;
  using Entry = std::pair<Cost, const State *>;
  struct Later {
    bool operator()(const Entry &a, const Entry &b) const {
      if (a.first != b.first)
        return a.first > b.first;
      return *b.second < *a.second;
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, Later> open_;
};

template <typename Element>
bool contains(const std::vector<Element> &list, const Element &element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

/// Returns the strides at which parts of an axis begin and end.
std::set<int64_t> ReshardSearch::cutsOf(const Layout &layout, int axis) const {
  std::set<int64_t> cuts;
  auto add = [&](const AxisParts &parts) {
    for (const AxisPart &part : parts)
      if (part.axis == axis)
        cuts.insert({part.stride, part.stride * part.size});
  };
  for (const AxisParts &parts : layout.dims)
    add(parts);
  add(layout.partial);
  return cuts;
}

/// Returns true if each cut divides the next. Then all cuts lie on one mixed
/// radix.
bool isChain(const std::set<int64_t> &cuts) {
  int64_t last = 1;
  for (int64_t cut : cuts) {
    if (cut % last != 0)
      return false;
    last = cut;
  }
  return true;
}

/// Joins `own` with the cuts of `other` that nest with it.
std::set<int64_t> joinCuts(std::set<int64_t> own,
                           const std::set<int64_t> &other) {
  for (int64_t cut : other) {
    std::set<int64_t> joined = own;
    joined.insert(cut);
    if (isChain(joined))
      own = std::move(joined);
  }
  return own;
}

int ReshardSearch::internAtom(const AxisPart &atom) {
  auto found = std::find(atoms_.begin(), atoms_.end(), atom);
  if (found == atoms_.end())
    found = atoms_.insert(found, atom);
  return int(found - atoms_.begin());
}

/// Expresses `layout`, canonical, in atoms that are parts of `other` where
/// possible.
State ReshardSearch::atomize(const Layout &layout, const Layout &other) {
  auto split = [&](const AxisParts &parts) {
    Atoms atoms;
    for (const AxisPart &part : parts) {
      std::set<int64_t> cuts =
          joinCuts(cutsOf(layout, part.axis), cutsOf(other, part.axis));
      auto end = cuts.find(part.stride * part.size);
      while (*end > part.stride) {
        auto begin = std::prev(end);
        atoms.push_back(internAtom({part.axis, *begin, *end / *begin}));
        end = begin;
      }
    }
    return atoms;
  };
  State state;
  for (const AxisParts &parts : layout.dims)
    state.dims.push_back(split(parts));
  state.partial = split(layout.partial);
  std::sort(state.partial.begin(), state.partial.end());
  return state;
}

int64_t ReshardSearch::sizeOf(const Atoms &atoms) const {
  int64_t size = 1;
  for (int atom : atoms)
    size *= atoms_[atom].size;
  return size;
}

AxisParts ReshardSearch::partsOf(const Atoms &atoms) const {
  AxisParts parts;
  for (int atom : atoms)
    parts.push_back(atoms_[atom]);
  return parts;
}

Layout ReshardSearch::layoutOf(const State &state) const {
  Layout layout;
  for (const Atoms &atoms : state.dims)
    layout.dims.push_back(partsOf(atoms));
  layout.partial = partsOf(state.partial);
  return canonicalLayout(layout);
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

bool ReshardSearch::refines(int dim, const Atoms &outer,
                            const Atoms &inner) const {
  return splitRefines(shape_[dim], sizeOf(outer), sizeOf(inner));
}

/// Returns true if the layout is replicated over the atom, so that a slice may
/// use it.
bool ReshardSearch::isFree(const State &state, int atom) const {
  auto clashes = [&](int other) {
    return other == atom || !areIndependent(atoms_[other], atoms_[atom]);
  };
  for (const Atoms &atoms : state.dims)
    if (std::any_of(atoms.begin(), atoms.end(), clashes))
      return false;
  return std::none_of(state.partial.begin(), state.partial.end(), clashes);
}

/// Returns what a rank sends, as an integer, so that equal costs compare as
/// equal. The unit is the tensor's bytes divided by the square of the number of
/// ranks.
int64_t ReshardSearch::sentShare(const State &before, const Move &move) const {
  int64_t ranks = mesh_.size(), group = sizeOf(move.group);
  int64_t parts = 1;
  for (const Atoms &atoms : before.dims)
    parts *= sizeOf(atoms);
  int64_t held = ranks / parts; // of the tensor, in units of 1 / ranks
  switch (move.kind) {
  case ReshardKind::AllReduce:
    return 2 * (group - 1) * (ranks / group) * held;
  case ReshardKind::AllGather:
    return (group - 1) * ranks * held;
  case ReshardKind::ReduceScatter:
  case ReshardKind::AllToAll:
    return (group - 1) * (ranks / group) * held;
  case ReshardKind::Slice:
    return 0;
  }
  return 0;
}

State ReshardSearch::apply(State state, const Move &move) const {
  auto remove = [&](Atoms &atoms) {
    auto isMoved = [&](int atom) { return contains(move.group, atom); };
    atoms.erase(std::remove_if(atoms.begin(), atoms.end(), isMoved),
                atoms.end());
  };
  auto append = [&](int dim) {
    Atoms &atoms = state.dims[dim];
    atoms.insert(atoms.end(), move.group.begin(), move.group.end());
  };
  remove(state.partial);
  if (move.kind == ReshardKind::AllGather || move.kind == ReshardKind::AllToAll)
    remove(state.dims[move.dim]);
  if (move.kind == ReshardKind::ReduceScatter ||
      move.kind == ReshardKind::Slice)
    append(move.dim);
  if (move.kind == ReshardKind::AllToAll)
    append(move.toDim);
  return state;
}

void ReshardSearch::tryMove(const State &state, const Move &move) {
  --movesLeft_;
  const Cost &soFar = nodes_.at(state).cost;
  Cost cost = {soFar.first + sentShare(state, move), soFar.second + 1};
  Node node = {cost, &state, move};
  auto [entry, isNew] = nodes_.try_emplace(apply(state, move), node);
  if (!isNew && entry->second.cost <= cost)
    return;
  entry->second = node;
  open_.push({cost, &entry->first});
}

/// Expands reductions. Every ordered choice of partial atoms can be scattered
/// over a dimension, in that order; for an all_reduce the order does not
/// matter.
void ReshardSearch::expandReductions(const State &state, Atoms &chosen) {
  if (!chosen.empty()) {
    if (std::is_sorted(chosen.begin(), chosen.end()))
      tryMove(state, {ReshardKind::AllReduce, chosen, -1, -1});
    for (int dim = 0; dim < int(shape_.size()); ++dim)
      if (refines(dim, state.dims[dim], chosen))
        tryMove(state, {ReshardKind::ReduceScatter, chosen, dim, -1});
  }
  for (int atom : reducible_) {
    if (movesLeft_ <= 0)
      return;
    if (!contains(state.partial, atom) || contains(chosen, atom))
      continue;
    chosen.push_back(atom);
    expandReductions(state, chosen);
    chosen.pop_back();
  }
}

void ReshardSearch::expandDimension(const State &state, int dim) {
  const Atoms &atoms = state.dims[dim], &wanted = goal_.dims[dim];
  for (size_t kept = 0; kept < atoms.size(); ++kept) {
    Atoms outer(atoms.begin(), atoms.begin() + kept);
    Atoms group(atoms.begin() + kept, atoms.end());
    if (!refines(dim, outer, group))
      continue;
    tryMove(state, {ReshardKind::AllGather, group, dim, -1});
    for (int toDim = 0; toDim < int(shape_.size()); ++toDim)
      if (toDim != dim && refines(toDim, state.dims[toDim], group))
        tryMove(state, {ReshardKind::AllToAll, group, dim, toDim});
  }
  if (atoms.size() > wanted.size() ||
      !std::equal(atoms.begin(), atoms.end(), wanted.begin()))
    return;
  Atoms group;
  for (size_t i = atoms.size(); i < wanted.size(); ++i) {
    if (!isFree(state, wanted[i]))
      break;
    group.push_back(wanted[i]);
    if (refines(dim, atoms, group))
      tryMove(state, {ReshardKind::Slice, group, dim, -1});
  }
}

void ReshardSearch::expand(const State &state) {
  Atoms chosen;
  expandReductions(state, chosen);
  for (int dim = 0; dim < int(shape_.size()); ++dim)
    expandDimension(state, dim);
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// Runs Dijkstra's algorithm. Returns false if the limit of moves was reached
/// first.
bool ReshardSearch::search() {
  auto start = nodes_.try_emplace(start_, Node{{0, 0}, nullptr, {}}).first;
  open_.push({{0, 0}, &start->first});
  while (!open_.empty() && movesLeft_ > 0) {
    const State &state = *open_.top().second;
    open_.pop();
    Node &node = nodes_.at(state);
    if (node.isDone)
      continue;
    if (state == goal_)
      return true;
    node.isDone = true;
    expand(state);
  }
  return false;
}

std::vector<Move> ReshardSearch::foundMoves() const {
  std::vector<Move> moves;
  const Node *node = &nodes_.at(goal_);
  for (; node->parent; node = &nodes_.at(*node->parent))
    moves.push_back(node->move);
  std::reverse(moves.begin(), moves.end());
  return moves;
}

/// Returns the plan that always works: whole lists are one group each, so
/// nothing depends on the nesting of parts.
std::vector<Move> ReshardSearch::gatherAndCut() const {
  std::vector<Move> moves;
  if (!reducible_.empty())
    moves.push_back({ReshardKind::AllReduce, reducible_, -1, -1});
  std::vector<Move> cuts;
  for (int dim = 0; dim < int(shape_.size()); ++dim) {
    if (start_.dims[dim] == goal_.dims[dim])
      continue;
    if (!start_.dims[dim].empty())
      moves.push_back({ReshardKind::AllGather, start_.dims[dim], dim, -1});
    if (!goal_.dims[dim].empty())
      cuts.push_back({ReshardKind::Slice, goal_.dims[dim], dim, -1});
  }
  moves.insert(moves.end(), cuts.begin(), cuts.end());
  return moves;
}

std::vector<ReshardStep>
ReshardSearch::makeSteps(const std::vector<Move> &moves) const {
  std::vector<ReshardStep> steps;
  State state = start_;
  for (const Move &move : moves) {
    ReshardStep step;
    step.kind = move.kind;
    step.group = canonicalParts(partsOf(move.group));
    step.dim = move.dim;
    step.toDim = move.toDim;
    step.before = layoutOf(state);
    state = apply(state, move);
    step.after = layoutOf(state);
    steps.push_back(std::move(step));
  }
  if (!steps.empty()) {
    steps.front().before = from_;
    steps.back().after = to_;
  }
  return steps;
}

StatusOr<std::vector<ReshardStep>> ReshardSearch::run() {
  Layout from = canonicalLayout(from_), to = canonicalLayout(to_);
  start_ = atomize(from, to);
  goal_ = atomize(to, from);
  for (int atom : goal_.partial)
    if (!contains(start_.partial, atom))
      return Status::invalidArgument(
          "cannot reshard " + describeLayout(mesh_, from_) + " to " +
          describeLayout(mesh_, to_) + ": the value is not partial over " +
          describePart(mesh_, atoms_[atom]) +
          " before and cannot become so; reduce later or not at all");
  for (int atom : start_.partial)
    if (!contains(goal_.partial, atom))
      reducible_.push_back(atom);
  return makeSteps(search() ? foundMoves() : gatherAndCut());
}

} // namespace

StatusOr<std::vector<ReshardStep>>
planReshard(const Mesh &mesh, const Layout &from, const Layout &to,
            const Shape &shape, int64_t maxMoves) {
  DYNA_RETURN_IF_ERROR(checkLayout(mesh, from, shape.size()));
  DYNA_RETURN_IF_ERROR(checkLayout(mesh, to, shape.size()));
  return ReshardSearch(mesh, from, to, shape, maxMoves).run();
}

} // namespace dyna
