//===- Flags.cpp - Lists the flags of a compiled binary -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/Flags.h"

#include "runtime/plan/model/Bytes.h"
#include "runtime/train/flags/SaveSchedule.h"

#include <algorithm>
#include <deque>
#include <limits>

using namespace dyna;

namespace {

Flag toggle(const char *section, const char *name, const char *help,
            bool TrainOptions::*field, Stored stored = Stored::No) {
  Flag flag{section, name, "", help, stored};
  flag.toggle = field;
  return flag;
}
Flag integer(const char *section, const char *name, const char *help,
             int64_t TrainOptions::*field, double low, double high,
             Stored stored) {
  Flag flag{section, name, "N", help, stored, low, high};
  flag.integer = field;
  return flag;
}
Flag real(const char *section, const char *name, const char *help,
          double TrainOptions::*field, double low, double high,
          Stored stored = Stored::Numbers) {
  Flag flag{section, name, "X", help, stored, low, high};
  flag.real = field;
  return flag;
}
Flag choice(const char *section, const char *name, const char *help,
            std::string TrainOptions::*field, std::vector<std::string> choices,
            Stored stored) {
  Flag flag{section, name, "WORD", help, stored};
  flag.text = field;
  flag.choices = std::move(choices);
  return flag;
}
/// Describes a flag whose choice is optional with `=`: the flag alone means the
/// first word.
Flag describe(const char *section, const char *name, const char *help,
              std::string TrainOptions::*field,
              std::vector<std::string> choices) {
  Flag flag{section, name, "[=WORD]", help, Stored::No};
  flag.text = field;
  flag.choices = std::move(choices);
  flag.implied = "table";
  return flag;
}
Flag text(const char *section, const char *name, const char *value,
          const char *help, std::string TrainOptions::*field,
          Stored stored = Stored::No, bool isPath = false) {
  Flag flag{section, name, value, help, stored};
  flag.text = field;
  flag.isPath = isPath;
  return flag;
}
Flag list(const char *section, const char *name, const char *help,
          std::vector<std::string> TrainOptions::*field) {
  Flag flag{section, name, "PATH", help, Stored::Numbers};
  flag.list = field;
  flag.isPath = true;
  return flag;
}

/// Points the flag at the field that the word sets.
struct SetField {
  Flag &flag;
  void operator()(std::monostate) const {}
  void operator()(bool PlanningValues::*field) const { flag.toggle = field; }
  void operator()(int64_t PlanningValues::*field) const {
    flag.integer = field;
  }
  void operator()(std::string PlanningValues::*field) const {
    flag.text = field;
  }
};

/// Describes a flag that is a planning word; `more` is help text for runs
/// alone.
Flag planning(const char *section, Word name, Stored stored,
              const char *more = "") {
  static std::deque<std::string> texts; // owns all help texts
  const PlanningWord &word = wordOf(name);
  texts.push_back(describeWord(name, more));
  Flag flag{section, word.name, word.unit, texts.back().c_str(), stored};
  flag.word = &word;
  flag.low = static_cast<double>(word.low);
  flag.high = static_cast<double>(word.high);
  flag.isPath = name == Word::Costs;
  std::visit(SetField{flag}, word.field);
  return flag;
}

std::vector<Flag> dataFlags() {
  using O = TrainOptions;
  constexpr double big = 1e15;
  return {
      list("Data", "data",
           "a directory, a text file, lines of JSON or a Megatron-LM .idx/.bin "
           "prefix; may be repeated",
           &O::data),
      list("Data", "held-out", "documents to evaluate at start and end",
           &O::heldOut),
      real("Data", "held-out-fraction",
           "hold out this part of the documents instead", &O::heldOutFraction,
           0, 0.9),
      integer("Data", "held-out-tokens", "evaluate at most that many tokens",
              &O::heldOutTokens, 1, big, Stored::Yes),
      integer("Data", "evaluate-every",
              "evaluate them after so many steps, too, for the curve "
              "\"held_out_loss\" of --metrics; 0: only at start and end",
              &O::evaluateEvery, 0, mostSteps, Stored::Yes),
      integer("Data", "skip-bad-lines",
              "leave out up to that many lines of JSON that cannot be read, of "
              "all files together, and name them",
              &O::skipBadLines, 0, big, Stored::Numbers),
      text("Data", "fields", "NAMES",
           "members of lines of JSON that are read: "
           "input=instruction+input,target=output, or text=title+body, or "
           "messages=conversation (default: text, input and target, or "
           "messages)",
           &O::fields, Stored::Numbers),
      choice("Data", "long-documents",
             "split, truncate, skip or error: texts longer than the model's "
             "positions, or than fit a rank's memory; input/target pairs are "
             "always shortened in their "
             "input, unless that is an error",
             &O::longDocuments, {"split", "truncate", "skip", "error"},
             Stored::Numbers),
      choice("Data", "shuffle",
             "samples, documents (the samples of each one after another) or "
             "none: what is in random order",
             &O::shuffle, {"samples", "documents", "none"}, Stored::Numbers),
      toggle("Data", "pad",
             "pad samples to the longest of their micro-batch, to see what "
             "that costs",
             &O::pad, Stored::Yes),
      toggle("Data", "allow-changed-data",
             "resume although the data or their samples are not those of the "
             "saved run, with a new epoch",
             &O::allowChangedData),
  };
}

std::vector<Flag> stepsFlags() {
  using O = TrainOptions;
  return {
      integer("Steps", "steps", "optimizer steps in all", &O::steps, 1,
              mostSteps, Stored::Yes),
      planning("Steps", Word::TokensPerBatch, Stored::Numbers),
      planning("Steps", Word::MicroBatches, Stored::Yes),
      planning("Steps", Word::TokensPerMicroBatch, Stored::Numbers),
      planning("Steps", Word::InFlight, Stored::Numbers),
      integer("Steps", "plan-ahead",
              "mini-batches read and planned while others run, 0: none",
              &O::planAhead, 0, 64, Stored::Yes),
      integer("Steps", "plan-threads",
              "threads that plan them; the plans are the same with any number",
              &O::planThreads, 1, 64, Stored::Yes),
      text("Steps", "store", "ADDRESS",
           "share plans with other processes through redis://HOST:PORT (dynac "
           "--with=redis; password in DYNA_STORE_PASSWORD): those of planners "
           "are run, or processes plan in turn",
           &O::store),
      integer("Steps", "store-retry",
              "seconds for which a lost store is tried again, and after which "
              "a plan that is missing is made where it is needed; 0: both end "
              "the run",
              &O::storeRetry, 0, 1e6, Stored::No),
      text("Steps", "plan-only", "I/N",
           "be planner I, from 0, of N for the processes that train with the "
           "same flags and --store",
           &O::planOnly),
      planning("Steps", Word::SplitBackward, Stored::Numbers),
      planning("Steps", Word::Slices, Stored::Numbers),
      planning("Steps", Word::Recompute, Stored::Yes),
      integer("Steps", "seed", "of initial values, data order and dropout",
              &O::seed, 0, 9e15, Stored::Numbers),
  };
}

std::vector<Flag> ranksFlags() {
  using O = TrainOptions;
  return {
      planning("Ranks", Word::Strategy, Stored::Yes,
               "a name is one of --strategies; under mpirun (dynac "
               "--with=mpi) each process is a rank"),
      planning("Ranks", Word::Strategies, Stored::Yes),
      planning(
          "Ranks", Word::Ranges, Stored::Yes,
          "strategies follow each other in a step in this order, and "
          "home=short at the end says which of them makes the update; or "
          "search: the strategies and lengths with which a step of these data "
          "is shortest, for --ranks; instead of --strategy"),
      planning("Ranks", Word::MergeRanges, Stored::Yes),
      planning("Ranks", Word::Ranks, Stored::No),
      integer(
          "Ranks", "timeout",
          "seconds after which a rank that waits for another gives up, or a "
          "process for others to start, or a run for its device",
          &O::timeout, 1, 1e6, Stored::Yes),
      text("Ranks", "repack", "LIST",
           "go over to other ranks between two steps: \"6@3000; "
           "dp=2,pp=2@7000\" after 3000 steps to 6 ranks with the same tp, "
           "after 7000 to a strategy; auto: behind each change of the model to "
           "the fewest ranks that hold it; auto=per-rank, auto=replicas: to "
           "those with the most tokens/s per rank, or in all; freed ranks "
           "wait, and can come back",
           &O::repack, Stored::Yes),
      text("Ranks", "release", "WORD",
           "what --repack does with freed ranks: wait, or exit: the run saves "
           "and ends with code 3, and --resume goes on with fewer ranks",
           &O::release, Stored::Yes),
      text("Ranks", "rebalance", "WORDS",
           "move layers between stages when that makes steps faster: time, "
           "parameters or diffusion says by what layers are balanced; also "
           "every=5 steps between decisions, margin=0.5 (the gain exceeds the "
           "price of a move by that share), least=0.01 (a step becomes faster "
           "by that share), slower=0.02 (a move that makes steps slower by "
           "that share is taken back)",
           &O::rebalance, Stored::Yes),
      planning("Ranks", Word::Pipeline, Stored::Yes),
      planning("Ranks", Word::RankMemory, Stored::Yes,
               "with --ranges also for the graph that comes or goes and for "
               "transfers of switches, but not for what MPI packs, up to 4 "
               "MiB for each other rank"),
      planning("Ranks", Word::Costs, Stored::Yes),
      text("Ranks", "profile", "FILE",
           "measure what layers take, on the ranks of the strategy, and write "
           "what --costs reads; what FILE has of other tensor degrees stays",
           &O::profile, Stored::No, true),
      integer("Ranks", "profile-seconds",
              "time for --profile; one that is too short leaves larger "
              "micro-batches out",
              &O::profileSeconds, 1, 1e6, Stored::No),
  };
}

std::vector<Flag> optimizerFlags() {
  using O = TrainOptions;
  return {
      real("Optimizer", "lr", "learning rate after the warm-up",
           &O::learningRate, 0, 1e6),
      real("Optimizer", "min-lr", "where the schedule ends (default: lr / 10)",
           &O::minLearningRate, 0, 1e6),
      integer("Optimizer", "warmup",
              "steps of linear warm-up (default: a tenth of --schedule-steps, "
              "at most 100)",
              &O::warmup, 0, mostSteps, Stored::Numbers),
      choice("Optimizer", "schedule", "cosine, linear or constant",
             &O::schedule, {"cosine", "linear", "constant"}, Stored::Numbers),
      integer("Optimizer", "schedule-steps",
              "steps after which the schedule has ended (default: --steps)",
              &O::scheduleSteps, 0, mostSteps, Stored::Numbers),
      real("Optimizer", "weight-decay", "AdamW's decoupled weight decay",
           &O::weightDecay, 0, 1e6),
      real("Optimizer", "beta1", "AdamW's decay of the mean", &O::beta1, 0,
           0.999999999),
      real("Optimizer", "beta2", "AdamW's decay of the variance", &O::beta2, 0,
           0.999999999),
      real("Optimizer", "epsilon", "AdamW's epsilon", &O::epsilon, 1e-300, 1),
      real("Optimizer", "clip", "limit of the gradient's global norm, 0: none",
           &O::clip, 0, 1e30),
      toggle("Optimizer", "no-gradient-norm",
             "neither compute nor require gradient norms (needs --clip 0): a "
             "gradient that is not finite then spoils the parameters",
             &O::noGradientNorm, Stored::Numbers),
      integer(
          "Optimizer", "skip-nonfinite",
          "steps whose loss or gradient is not finite that are passed over, "
          "without an update, before the run ends",
          &O::skipNonfinite, 0, mostSteps, Stored::Yes),
      text("Optimizer", "prune", "WORDS",
           "make the smallest weights of blocks zero while training, as in "
           "final=0.9,from=3000,until=7000,every=1000; also initial=0.5, "
           "params=*.mlp.*+*.attn.*, scope=layer (default: global), "
           "criterion=gradient (default: magnitude), regrow=0.3, "
           "structure=head or channel (default: element); from=N "
           "alone prunes once",
           &O::prune, Stored::Numbers),
      text("Optimizer", "freeze", "LIST",
           "freeze layers between two steps: \"embed+h.0-h.5@2000; "
           "auto=0.2@4000; thaw=h.5@6000\" freezes these after 2000 steps, "
           "after 4000 at most a fifth of the layers that are left by their "
           "gradient norms, and thaws one after 6000. For binaries of dynac "
           "--freezable",
           &O::freeze, Stored::Numbers),
      real("Optimizer", "sparse-from",
           "compute a pruned weight in sparse form once this share of a rank's "
           "part is zero; 1: only if all of it is (default: by the compute "
           "type). For binaries of dynac --sparse",
           &O::sparseFrom, 0, 1),
  };
}

std::vector<Flag> filesFlags() {
  using O = TrainOptions;
  return {
      text("Files", "metrics", "FILE",
           "one JSON line per step; to be given again with --resume",
           &O::metrics, Stored::Told, true),
      text("Files", "trace", "FILE", "a trace for ui.perfetto.dev", &O::trace,
           Stored::No, true),
      integer("Files", "trace-steps", "steps to trace, from the first one",
              &O::traceSteps, 1, 1e6, Stored::No),
      text("Files", "save", "DIR",
           "save checkpoints there (with --resume DIR: default DIR)", &O::save,
           Stored::Told, true),
      text(
          "Files", "save-every", "N",
          "save after so many steps, or a time such as 90s, 10min, 2h; 0: only "
          "at the end",
          &O::saveEvery, Stored::Yes),
      integer("Files", "keep",
              "newest checkpoints that stay; older ones are removed after a "
              "save",
              &O::keep, 1, 1e9, Stored::Yes),
      toggle("Files", "remove-first",
             "where the disk has no room for one checkpoint more than --keep, "
             "remove the oldest before the next is written",
             &O::removeFirst, Stored::Yes),
      text("Files", "max-shard-size", "BYTES",
           "a model of more bytes is saved in shards of at most so many, with "
           "an index; 0: in one file",
           &O::maxShardSize, Stored::Yes),
      text("Files", "resume", "DIR",
           "continue the run saved there; its flags hold unless given again",
           &O::resume, Stored::No, true),
      text("Files", "load", "DIR", "start from the parameters saved there",
           &O::load, Stored::No, true),
      text("Files", "print-grad-norms", "FILE",
           "write all losses and the norm of every gradient of the first step",
           &O::gradNorms, Stored::No, true),
      text("Files", "counts", "FILE",
           "write what each rank computed, held and sent, as JSON", &O::counts,
           Stored::No, true),
      text("Files", "dump-plans", "DIR",
           "write the plan of each step there, step-N.plan; dyna-translate "
           "--plan-to-mlir makes it text",
           &O::dumpPlans, Stored::No, true),
      text("Files", "plans", "DIR",
           "run the plans of that folder, which may have been edited, instead "
           "of making them",
           &O::plans, Stored::No, true),
  };
}

std::vector<Flag> otherFlags() {
  using O = TrainOptions;
  return {
      toggle("Other", "evaluate", "only evaluate the loss on --data",
             &O::evaluate),
      text("Other", "write-lengths", "FILE",
           "only write the tokens of each sample of --data, a line each, as "
           "dyna-plan and dynac take them as --lengths",
           &O::writeLengths, Stored::No, true),
      describe("Other", "describe",
               "print what the binary is: table (default), json or proto",
               &O::describe, {"table", "json", "proto"}),
      integer("Other", "threads", "worker threads (default: all cores)",
              &O::threads, 1, 1024, Stored::Yes),
      integer("Other", "device",
              "which GPU, as the driver counts them (default 0; dynac "
              "--target=cuda)",
              &O::device, 0, 1023, Stored::No),
      toggle("Other", "tf32",
             "products of f32 may round their operands to 10 bits of mantissa, "
             "which GPUs multiply faster (dynac --target=cuda)",
             &O::tf32),
      text("Other", "algorithms", "FILE",
           "time the algorithms that cuBLASLt has for products, once for each "
           "kind of product, between steps, and keep the fastest in FILE, for "
           "this run and later ones (dynac --target=cuda)",
           &O::algorithms, Stored::No, true),
      toggle("Other", "deterministic",
             "the same command gives the same bits: nothing depends on times "
             "or on what memory is free; --algorithms is only read (dynac "
             "--target=cuda)",
             &O::deterministic),
      choice("Other", "attention",
             "of bf16 on a GPU: own, by kernels of this program; cudnn, where "
             "there is cuDNN and it has a plan; its workspace takes 1 GiB",
             &O::attention, {"own", "cudnn"}, Stored::No),
      text("Other", "isa", "NAME", "instruction set, instead of the best one",
           &O::isa),
      text("Other", "memory-limit", "BYTES",
           "of all that this process takes: parameters, micro-batches, "
           "mini-batches, tables of data, saves and the program itself, for "
           "example 4GiB",
           &O::memoryLimit),
      toggle("Other", "progress", "show the progress bar in any case",
             &O::progress),
      toggle("Other", "no-progress", "show no progress", &O::noProgress),
      toggle("Other", "check-memory",
             "poison free memory and look for stray writes (very slow)",
             &O::checkMemory),
      toggle("Other", "version", "print the version of Dyna", &O::version),
      toggle("Other", "help", "print this", &O::help),
  };
}

} // namespace

const std::vector<Flag> &dyna::flags() {
  static const std::vector<Flag> table = [] {
    std::vector<Flag> all;
    for (auto *section : {dataFlags, stepsFlags, ranksFlags, optimizerFlags,
                          filesFlags, otherFlags})
      for (Flag &flag : section())
        all.push_back(std::move(flag));
    return all;
  }();
  return table;
}

const Flag *dyna::findFlag(const std::string &name) {
  for (const Flag &flag : flags())
    if (name == flag.name)
      return &flag;
  return nullptr;
}

std::string dyna::suggestion(const std::string &name) {
  std::string best;
  size_t bestDistance = 4;
  for (const Flag &flag : flags()) {
    std::string other = flag.name;
    std::vector<size_t> row(other.size() + 1);
    for (size_t j = 0; j <= other.size(); ++j)
      row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= other.size(); ++j) {
        size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1,
                           diagonal + (name[i - 1] != other[j - 1])});
        diagonal = above;
      }
    }
    if (row[other.size()] < bestDistance) {
      bestDistance = row[other.size()];
      best = other;
    }
  }
  return best.empty() ? "--help lists all flags"
                      : "did you mean --" + best + "?";
}
