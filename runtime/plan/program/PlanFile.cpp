//===- PlanFile.cpp - Reads and writes plans ------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/PlanFile.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/Plan.pb.h"
#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

namespace dyna {

using plan::Instruction;

namespace {

Status bad(const std::string &what) {
  return Status::invalidArgument("these bytes are no plan: " + what);
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

using List = google::protobuf::RepeatedField<int32_t>;

/// Places of the values of a field in a program.
struct Column {
  Field field;
  const List &(plan::file::Program::*values)() const;
  List *(plan::file::Program::*edit)();
  const char *name;
  bool mayBeLeftOut; ///< if all of them are 0
};

constexpr Column columns[] = {
#define DYNA_COLUMN(field, list, name, mayBeLeftOut)                           \
  {Field::field, &plan::file::Program::list,                                   \
   &plan::file::Program::mutable_##list, name, mayBeLeftOut}
    DYNA_COLUMN(Layer, layers, "layers", false),
    DYNA_COLUMN(MicroBatch, micro_batches, "micro-batches", false),
    DYNA_COLUMN(Recompute, recompute, "recompute modes", true),
    DYNA_COLUMN(Phase, phases, "phases", false),
    DYNA_COLUMN(Bucket, buckets, "buckets", false),
    DYNA_COLUMN(Parameter, parameters, "parameters", true),
#undef DYNA_COLUMN
};
static_assert(std::size(columns) == fieldCount, "a field has no column");

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

plan::file::Program columnsOf(const plan::RankProgram &program) {
  plan::file::Program out;
  for (const Instruction &i : program.instructions)
    out.mutable_instructions()->push_back(static_cast<char>(i.op));
  for (const Column &column : columns) {
    List &values = *(out.*column.edit)();
    bool hasAny = !column.mayBeLeftOut;
    for (const Instruction &i : program.instructions)
      if (hasField(i.op, column.field)) {
        values.Add(static_cast<int32_t>(fieldOf(i, column.field)));
        hasAny |= fieldOf(i, column.field) != 0;
      }
    if (!hasAny)
      values.Clear();
  }
  return out;
}

template <typename Values> void leaveOutZeros(Values &values) {
  if (std::all_of(values.begin(), values.end(),
                  [](auto value) { return value == 0; }))
    values.Clear();
}

void writeMicroBatch(const plan::MicroBatch &microBatch,
                     plan::file::MicroBatch &out) {
  out.set_replica(microBatch.replica);
  for (const plan::Segment &segment : microBatch.segments) {
    out.add_samples(segment.sample);
    out.add_begins(segment.begin);
    out.add_lengths(segment.length);
    out.add_streams(segment.stream);
    out.add_key_streams(segment.keyStream);
    out.add_key_begins(segment.keyBegin);
    out.add_key_ends(
        segment.keyEnd == plan::Segment::ownEnd ? 0 : segment.keyEnd + 1);
  }
  leaveOutZeros(*out.mutable_begins());
  leaveOutZeros(*out.mutable_streams());
  leaveOutZeros(*out.mutable_key_streams());
  leaveOutZeros(*out.mutable_key_begins());
  leaveOutZeros(*out.mutable_key_ends());
}

int64_t varintBytes(int64_t value) {
  int64_t bytes = 1;
  for (; value >= 128; value /= 128)
    ++bytes;
  return bytes;
}

/// Blocks are many and lie at few places: as numbers in a list of these most take
/// one byte, however large offsets are.
void writePlaces(const plan::RankProgram &program, bool mayList,
                 plan::file::Rank &rank) {
  std::vector<int64_t> places; // in units of the alignment; -1: none
  for (const Instruction &i : program.instructions)
    for (int index = 0; index < takenBy(i.op).count; ++index)
      places.push_back(i.places[index] == plan::noPlace
                           ? -1
                           : i.places[index] / plan::placeAlignment);
  std::unordered_map<int64_t, int64_t> numbers; // first counts, then numbers
  for (int64_t place : places)
    if (place >= 0)
      ++numbers[place];
  using Count = std::pair<int64_t, int64_t>; // negated count, place
  std::vector<Count> counts;
  for (auto [place, count] : numbers)
    counts.push_back({-count, place});
  std::sort(counts.begin(), counts.end());
  int64_t listed = 0, direct = 0;
  for (size_t number = 0; number < counts.size(); ++number) {
    auto [count, place] = counts[number];
    numbers[place] = static_cast<int64_t>(number);
    direct -= count * varintBytes(place + 1);
    listed += varintBytes(place) -
              count * varintBytes(static_cast<int64_t>(number) + 1);
  }
  // The list itself has a header.
  const bool isListed = mayList && listed + 1 + varintBytes(listed) < direct;
  if (isListed)
    for (auto [count, place] : counts)
      rank.add_offsets(place);
  for (int64_t place : places)
    rank.add_places(place < 0 ? 0 : 1 + (isListed ? numbers[place] : place));
}

/// Returns a program's places in a step, in the order of PhasePlaces.
std::array<int64_t *, 5> listOf(plan::PhasePlaces &places) {
  return {&places.dynamic, &places.values, &places.gradients,
          &places.valueTransit, &places.gradientTransit};
}

void writePhasePlaces(plan::PhasePlaces places, plan::file::Rank &rank) {
  if (places == plan::PhasePlaces())
    return;
  for (const int64_t *place : listOf(places))
    rank.add_phase_places(
        *place == plan::noPlace ? 0 : 1 + *place / plan::placeAlignment);
}

//===----------------------------------------------------------------------===//
// In
//===----------------------------------------------------------------------===//

Status readPhasePlaces(const plan::file::Rank &in, plan::PhasePlaces &places) {
  const auto list = listOf(places);
  if (in.phase_places_size() == 0)
    return Status::ok();
  if (in.phase_places_size() != static_cast<int>(list.size()))
    return bad(formatText("a rank has %d places in its step, not %d",
                          in.phase_places_size(), list.size()));
  for (size_t number = 0; number < list.size(); ++number) {
    const int64_t place = in.phase_places(static_cast<int>(number));
    if (place < 0 || place > INT64_MAX / plan::placeAlignment)
      return bad(formatText("a phase lies at place %d", place));
    *list[number] =
        place == 0 ? plan::noPlace : (place - 1) * plan::placeAlignment;
  }
  return Status::ok();
}

StatusOr<plan::MicroBatch> readMicroBatch(const plan::file::MicroBatch &in) {
  const int segments = in.samples_size();
  if (in.lengths_size() != segments ||
      (in.begins_size() != segments && in.begins_size() != 0))
    return bad(formatText("a micro-batch has %d samples, but %d begins and %d "
                          "lengths",
                          segments, in.begins_size(), in.lengths_size()));
  for (int count : {in.streams_size(), in.key_streams_size(),
                    in.key_begins_size(), in.key_ends_size()})
    if (count != segments && count != 0)
      return bad(
          formatText("a micro-batch has %d samples, but a stream or keys "
                     "for %d",
                     segments, count));
  plan::MicroBatch microBatch;
  microBatch.replica = in.replica();
  auto at = [](const auto &values, int index) {
    return values.empty() ? 0 : values.Get(index);
  };
  for (int index = 0; index < segments; ++index) {
    plan::Segment &segment = microBatch.segments.emplace_back();
    segment.sample = in.samples(index);
    segment.begin = at(in.begins(), index);
    segment.length = in.lengths(index);
    segment.stream = at(in.streams(), index);
    segment.keyStream = at(in.key_streams(), index);
    segment.keyBegin = at(in.key_begins(), index);
    const int64_t keyEnd = at(in.key_ends(), index);
    if (keyEnd < 0)
      return bad(formatText("keys of a segment end at %d", keyEnd));
    segment.keyEnd = keyEnd == 0 ? plan::Segment::ownEnd : keyEnd - 1;
  }
  return microBatch;
}

/// Takes the next element of a list.
template <typename Values>
Status take(const Values &values, int &at, const char *name, int64_t &value) {
  if (at == values.size())
    return bad(formatText("a program has %d %s, too few for its instructions",
                          at, name));
  value = values.Get(at++);
  return Status::ok();
}

StatusOr<std::vector<Instruction>>
readProgram(const plan::file::Program &program) {
  std::vector<Instruction> instructions;
  if (program.instructions().size() > maxPlanInstructions)
    return bad(
        formatText("it has more than %d instructions", maxPlanInstructions));
  instructions.reserve(program.instructions().size());
  std::array<int, fieldCount> at = {};
  for (char number : program.instructions()) {
    Instruction &i = instructions.emplace_back();
    i.op = static_cast<Instruction::Op>(number);
    if (i.op == Instruction::OP_UNKNOWN || i.op > Instruction::Op_MAX)
      return bad(formatText("it has an instruction of the unknown number %d",
                            static_cast<unsigned char>(number)));
    for (const Column &column : columns) {
      const List &values = (program.*column.values)();
      const bool isLeftOut = column.mayBeLeftOut && values.empty();
      if (!hasField(i.op, column.field) || isLeftOut)
        continue;
      int64_t value = 0;
      DYNA_RETURN_IF_ERROR(
          take(values, at[static_cast<int>(column.field)], column.name, value));
      if (column.field == Field::Recompute &&
          (value < 0 || value > plan::Recompute_MAX))
        return bad(formatText("it has a recompute mode of the unknown number "
                              "%d",
                              value));
      setField(i, column.field, value);
    }
  }
  return instructions;
}

Status readPlaces(const plan::file::Rank &in,
                  std::vector<Instruction> &instructions) {
  int at = 0;
  for (Instruction &i : instructions)
    for (int index = 0; index < takenBy(i.op).count; ++index) {
      int64_t place = 0;
      DYNA_RETURN_IF_ERROR(take(in.places(), at, "places", place));
      if (place > 0 && in.offsets_size() > 0) {
        if (place > in.offsets_size())
          return bad(formatText("a block lies at place %d of %d", place,
                                in.offsets_size()));
        const int64_t offset = in.offsets(static_cast<int>(place - 1));
        if (offset < 0 || offset > INT64_MAX / plan::placeAlignment)
          return bad(formatText("a list of places has %d", offset));
        place = offset + 1;
      }
      if (place < 0 || place > INT64_MAX / plan::placeAlignment)
        return bad(formatText("a block lies at place %d", place));
      i.places[index] =
          place == 0 ? plan::noPlace : (place - 1) * plan::placeAlignment;
    }
  return Status::ok();
}

/// Reads the programs of ranks. `instructions`: the number of those before, and
/// then also of these.
Status readRanks(const plan::file::Plan &file, plan::Plan &plan,
                 int64_t &instructions) {
  std::vector<std::vector<Instruction>> programs;
  for (const plan::file::Program &own : file.programs()) {
    DYNA_ASSIGN_OR_RETURN(std::vector<Instruction> program, readProgram(own));
    programs.push_back(std::move(program));
  }
  for (const plan::file::Rank &rank : file.ranks()) {
    if (rank.program() < 0 ||
        rank.program() >= static_cast<int>(programs.size()))
      return bad(formatText("a rank runs program %d of %d", rank.program(),
                            programs.size()));
    const auto &program = programs[rank.program()];
    instructions += static_cast<int64_t>(program.size());
    if (instructions > maxPlanInstructions)
      return bad(
          formatText("it has more than %d instructions", maxPlanInstructions));
    plan::RankProgram &out = plan.ranks.emplace_back();
    out.instructions = program;
    out.dynamicBytes = rank.dynamic_bytes();
    DYNA_RETURN_IF_ERROR(readPlaces(rank, out.instructions));
    DYNA_RETURN_IF_ERROR(readPhasePlaces(rank, out.places));
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

/// Encodes a plan. `mayList`: with lists of places, as in all versions but the
/// first.
void encode(const plan::Plan &plan, bool mayList, plan::file::Plan &file) {
  file.set_manifest_hash(plan.manifestHash);
  file.set_target_tokens(plan.targetTokens);
  file.set_name(plan.name);
  file.set_graph(plan.graph);
  file.set_fallback(plan.fallback);
  file.mutable_lengths()->Add(plan.lengths.begin(), plan.lengths.end());
  for (const plan::MicroBatch &microBatch : plan.microBatches)
    writeMicroBatch(microBatch, *file.add_micro_batches());
  std::map<std::string, int> programs;
  for (const plan::RankProgram &program : plan.ranks) {
    plan::file::Program own = columnsOf(program);
    auto [found, isNew] = programs.insert(
        {own.SerializeAsString(), static_cast<int>(programs.size())});
    if (isNew)
      *file.add_programs() = std::move(own);
    plan::file::Rank &rank = *file.add_ranks();
    rank.set_program(found->second);
    rank.set_dynamic_bytes(program.dynamicBytes);
    writePlaces(program, mayList, rank);
    writePhasePlaces(program.places, rank);
  }
}

std::string encode(const plan::Plan &plan, bool mayList) {
  plan::file::Plan file;
  encode(plan, mayList, file);
  return file.SerializeAsString();
}

StatusOr<plan::file::Plan> parse(std::string_view bytes) {
  plan::file::Plan file;
  if (bytes.size() > INT32_MAX ||
      !file.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return bad("they are damaged, or of another kind");
  return file;
}

/// Decodes a plan without phases. `instructions`: as above.
StatusOr<plan::Plan> decode(const plan::file::Plan &file,
                            int64_t &instructions) {
  plan::Plan plan;
  plan.manifestHash = file.manifest_hash();
  plan.targetTokens = file.target_tokens();
  plan.name = file.name();
  plan.graph = file.graph();
  plan.fallback = file.fallback();
  plan.lengths.assign(file.lengths().begin(), file.lengths().end());
  for (const plan::file::MicroBatch &in : file.micro_batches()) {
    DYNA_ASSIGN_OR_RETURN(plan::MicroBatch microBatch, readMicroBatch(in));
    plan.microBatches.push_back(std::move(microBatch));
  }
  DYNA_RETURN_IF_ERROR(readRanks(file, plan, instructions));
  return plan;
}

// A known plan has exactly one form. Anything else in the file would be lost,
// so refuse it.
Status unknownForm() {
  return bad("they say more than this version knows, or were written by "
             "something else");
}

StatusOr<plan::Plan> decodeWhole(const plan::file::Plan &file,
                                 std::string_view bytes) {
  int64_t instructions = 0;
  DYNA_ASSIGN_OR_RETURN(plan::Plan plan, decode(file, instructions));
  if (encode(plan, true) != bytes && encode(plan, false) != bytes)
    return unknownForm();
  return plan;
}

/// Returns the samples that micro-batches name, each once. For a plan of the
/// whole mini-batch, these are all samples.
std::vector<int64_t> namedSamples(const plan::Plan &plan) {
  std::set<int64_t> named;
  for (const plan::MicroBatch &microBatch : plan.microBatches)
    for (const plan::Segment &segment : microBatch.segments)
      named.insert(segment.sample);
  return {named.begin(), named.end()};
}

} // namespace

std::string writePlan(const plan::Plan &plan) { return encode(plan, true); }

StatusOr<plan::Plan> readPlan(std::string_view bytes) {
  DYNA_ASSIGN_OR_RETURN(plan::file::Plan file, parse(bytes));
  if (file.phases_size() > 0)
    return bad(formatText("they are a step of %d graphs", file.phases_size()));
  return decodeWhole(file, bytes);
}

std::string writeStepPlan(const plan::StepPlan &step) {
  if (step.phaseCount() == 1 &&
      step.phases[0].samples == namedSamples(step.phases[0].plan))
    return writePlan(step.phases[0].plan);
  plan::file::Plan file;
  for (const plan::Phase &phase : step.phases) {
    plan::file::Phase &out = *file.add_phases();
    encode(phase.plan, true, *out.mutable_plan());
    out.mutable_samples()->Add(phase.samples.begin(), phase.samples.end());
  }
  return file.SerializeAsString();
}

plan::StepPlan stepOf(plan::Plan plan) {
  plan::Phase phase;
  phase.samples = namedSamples(plan);
  phase.plan = std::move(plan);
  plan::StepPlan step;
  step.phases.push_back(std::move(phase));
  return step;
}

StatusOr<plan::StepPlan> readStepPlan(std::string_view bytes) {
  DYNA_ASSIGN_OR_RETURN(plan::file::Plan file, parse(bytes));
  if (file.phases_size() == 0) {
    DYNA_ASSIGN_OR_RETURN(plan::Plan plan, decodeWhole(file, bytes));
    return stepOf(std::move(plan));
  }
  plan::StepPlan step;
  int64_t instructions = 0;
  for (const plan::file::Phase &in : file.phases()) {
    plan::Phase &phase = step.phases.emplace_back();
    DYNA_ASSIGN_OR_RETURN(phase.plan, decode(in.plan(), instructions));
    phase.samples.assign(in.samples().begin(), in.samples().end());
  }
  if (writeStepPlan(step) != bytes)
    return unknownForm();
  return step;
}

} // namespace dyna
