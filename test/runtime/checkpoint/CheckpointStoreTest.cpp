//===- CheckpointStoreTest.cpp - Checkpoints on disk ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/OutputFile.h"
#include "runtime/checkpoint/StoredTensors.h"
#include "test/runtime/checkpoint/Checkpoints.h"

#include <chrono>
#include <csignal>
#include <map>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dyna;
using namespace dyna::test;

namespace {

TEST(CheckpointStoreTest, keepsTheLastTwo) {
  TemporaryDirectory dir;
  CheckpointStore store = mustOpen(dir / "a/b");
  for (int64_t step : {5, 10, 100, 1000})
    ASSERT_TRUE(store.save(Example(step).contents).isOk());
  EXPECT_EQ(namesIn(dir / "a/b"), (Names{"step-100", "step-1000"}));
  EXPECT_EQ(namesIn(dir / "a/b/step-1000"),
            (Names{"checkpoint.json", "config.json", "model.safetensors",
                   "optimizer.safetensors", "state.json"}));
  StatusOr<Checkpoint> checkpoint = loadCheckpoint(dir / "a/b");
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint->step, 1000);
  EXPECT_TRUE(isIntact(*checkpoint));
  EXPECT_TRUE(checkpoint->canResume());
  EXPECT_TRUE(checkpoint->notes.empty());
}

TEST(CheckpointStoreTest, replacesTheSameStep) {
  TemporaryDirectory dir;
  CheckpointStore store = mustOpen(dir.path());
  ASSERT_TRUE(store.save(Example(5, 10).contents).isOk());
  ASSERT_TRUE(store.save(Example(5, 20).contents).isOk());
  EXPECT_EQ(namesIn(dir.path()), (Names{"step-5"}));
  StatusOr<Checkpoint> checkpoint = loadCheckpoint(dir.path());
  ASSERT_TRUE(checkpoint.isOk());
  EXPECT_EQ(checkpoint->model.find("w")->shape[0], 20);
}

TEST(CheckpointStoreTest, keepsAsManyAsAskedFor) {
  TemporaryDirectory dir;
  auto store = CheckpointStore::open(dir.path(), -1, 4);
  ASSERT_TRUE(store.isOk());
  for (int64_t step : {1, 2, 3, 4, 5, 6})
    ASSERT_TRUE(store->save(Example(step).contents).isOk());
  EXPECT_EQ(namesIn(dir.path()),
            (Names{"step-3", "step-4", "step-5", "step-6"}));
  auto one = CheckpointStore::open(dir / "one", -1, 1);
  ASSERT_TRUE(one.isOk());
  for (int64_t step : {1, 2, 3})
    ASSERT_TRUE(one->save(Example(step).contents).isOk());
  EXPECT_EQ(namesIn(dir / "one"), (Names{"step-3"}));
}

// Damaged ones are no reason to remove a good one.
TEST(CheckpointStoreTest, keepsWholeOnes) {
  TemporaryDirectory dir;
  {
    auto store = CheckpointStore::open(dir.path(), -1, 9);
    ASSERT_TRUE(store.isOk());
    for (int64_t step : {1, 2, 3, 4})
      ASSERT_TRUE(store->save(Example(step).contents).isOk());
  }
  flipBit(dir / "step-2/model.safetensors", 999);
  flipBit(dir / "step-4/optimizer.safetensors", 999);
  CheckpointStore store = mustOpen(dir.path(), 3); // keeps two
  ASSERT_TRUE(store.save(Example(5).contents).isOk());
  EXPECT_EQ(namesIn(dir.path()), (Names{"step-3", "step-4", "step-5"}));
  // Once there are enough that are newer, damaged ones go with the rest.
  ASSERT_TRUE(store.save(Example(6).contents).isOk());
  EXPECT_EQ(namesIn(dir.path()), (Names{"step-5", "step-6"}));
}

TEST(CheckpointStoreTest, removesRemains) {
  TemporaryDirectory dir;
  dir.write(".dyna-tmp-7/model.safetensors", "half");
  dir.write(".dyna-tmp-7/dyna-unfinished", "");
  dir.write(".dyna-tmp-6/dyna-unfinished", "");
  dir.write(".dyna-tmp-old-3/state.json", "half");
  dir.write(".dyna-tmp-old-3/checkpoint.json",
            "{\"format\": 1, \"step\": 3, \"files\": {}}");
  std::filesystem::create_directory(dir / ".dyna-tmp-8");
  dir.write("mine", "kept");
  mustOpen(dir.path());
  EXPECT_EQ(namesIn(dir.path()), (Names{"mine"}));
}

/// Every file below a directory with its contents; links by their names alone.
std::map<std::string, std::string> treeOf(const std::string &directory) {
  std::map<std::string, std::string> tree;
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(directory))
    tree[entry.path().string()] = entry.is_symlink() ? "link"
                                  : entry.is_regular_file()
                                      ? readAll(entry.path().string())
                                      : "";
  return tree;
}

// Whatever is not certainly ours stays, whether a run begins, goes on or saves.
TEST(CheckpointStoreTest, leavesWhatOthersWrote) {
  TemporaryDirectory dir, elsewhere;
  {
    CheckpointStore store = mustOpen(elsewhere.path());
    ASSERT_TRUE(store.save(Example(4).contents).isOk());
  }
  std::string save = dir / "save";
  dir.write("save/step-1/notes.txt", "no checkpoint");
  dir.write("save/step-2/checkpoint.json", "{\"format\": 2, \"step\": 2}");
  dir.write("save/step-2/model.safetensors", "of a later version");
  // A checkpoint of ours to which somebody has added something.
  std::filesystem::copy(elsewhere / "step-4", save + "/step-4");
  dir.write("save/step-4/notes.txt", "dear to somebody");
  std::filesystem::create_directory_symlink(elsewhere / "step-4",
                                            save + "/step-3");
  dir.write("save/.tmp-7/model.safetensors", "of another program");
  dir.write("save/.dyna-tmp-99/notes.txt", "of nobody we know");
  // Our names alone are no mark.
  dir.write("save/.dyna-tmp-97/model.safetensors", "of nobody we know");
  dir.write("save/.dyna-tmp-96/checkpoint.json", "{\"format\": 2}");
  dir.write("save/.dyna-tmp-95/dyna-unfinished", "");
  dir.write("save/.dyna-tmp-95/notes.txt", "of nobody we know");
  dir.write("save/.dyna-tmp-99/state.json", "of nobody we know");
  std::filesystem::create_directory_symlink(elsewhere / "step-4",
                                            save + "/.dyna-tmp-98");
  auto before = treeOf(dir.path()), outside = treeOf(elsewhere.path());
  {
    auto store = CheckpointStore::open(save, 4, 1);
    ASSERT_TRUE(store.isOk()) << store.status().message();
    for (int64_t step : {5, 6, 7})
      ASSERT_TRUE(store->save(Example(step).contents).isOk());
    // What cannot be read stands in the way of its own number alone.
    dir.write("save/step-8/notes.txt", "came later");
    expectFailure(store->save(Example(8).contents),
                  "step-8: what stands there is no checkpoint of this program");
    std::filesystem::remove_all(save + "/step-8");
  }
  auto after = treeOf(dir.path());
  for (const auto &[path, contents] : before)
    EXPECT_EQ(after.count(path) ? after[path] : "gone", contents) << path;
  EXPECT_EQ(treeOf(elsewhere.path()), outside);
  for (const std::string &name : namesIn(save))
    EXPECT_TRUE(before.count(save + "/" + name) || name == "step-7") << name;
}

// Where a link leads is asked once, and is what is locked.
TEST(CheckpointStoreTest, aLinkIsFollowedOnce) {
  TemporaryDirectory dir;
  std::string link = dir / "link", one = dir / "one", other = dir / "other";
  for (const std::string &folder : {one, other})
    std::filesystem::create_directory(folder);
  for (const std::string &given : {link, link + "/"}) {
    std::filesystem::remove(link);
    std::filesystem::create_directory_symlink("one", link);
    CheckpointStore store = mustOpen(given);
    EXPECT_EQ(store.directory(), std::filesystem::canonical(one).string());
    expectFailure(CheckpointStore::open(one), "another run");
    std::filesystem::remove(link);
    std::filesystem::create_directory_symlink("other", link);
    ASSERT_TRUE(store.save(Example(3).contents).isOk());
    EXPECT_EQ(namesIn(one), (Names{"step-3"}));
    EXPECT_EQ(namesIn(other), Names());
    std::filesystem::remove_all(one + "/step-3");
  }
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink("nowhere", link);
  expectFailure(CheckpointStore::open(link),
                "is a symbolic link to nowhere, which is no folder");
}

// What it would write there would make it a checkpoint no more.
TEST(CheckpointStoreTest, savesIntoNoCheckpoint) {
  TemporaryDirectory dir;
  {
    CheckpointStore store = mustOpen(dir.path());
    ASSERT_TRUE(store.save(Example(3).contents).isOk());
  }
  auto before = treeOf(dir.path());
  expectFailure(CheckpointStore::open(dir / "step-3"),
                "step-3 is a checkpoint itself; give the folder that it lies "
                "in");
  EXPECT_EQ(treeOf(dir.path()), before);
}

TEST(CheckpointStoreTest, namesWhatItDoesNotKnow) {
  TemporaryDirectory dir;
  dir.write("step-9/checkpoint.json", "{\"format\": 2, \"step\": 9}");
  for (int64_t resumed : {-1, 5})
    expectFailure(CheckpointStore::open(dir.path(), resumed),
                  "step-9, which is no checkpoint that this program knows and "
                  "is left alone; move it away");
  EXPECT_TRUE(CheckpointStore::open(dir.path(), 9).isOk());
  EXPECT_EQ(namesIn(dir.path()), (Names{"step-9"}));
}

/// Changes one file of a checkpoint and what its list says of it.
void craftList(const std::string &step, const std::string &from,
               const std::string &to) {
  std::string path = step + "/checkpoint.json", text = readAll(path);
  size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos);
  std::ofstream(path, std::ios::binary) << text.replace(at, from.size(), to);
}

// A checkpoint may come from anybody: it is not asked what else to read.
TEST(CheckpointStoreTest, namesInsideStayInside) {
  TemporaryDirectory dir;
  {
    CheckpointStore store = mustOpen(dir.path());
    ASSERT_TRUE(store.save(Example(3).contents).isOk());
  }
  std::string step = dir / "step-3", list = readAll(step + "/checkpoint.json");
  std::filesystem::copy(step + "/config.json", dir / "config.json");
  for (const char *name :
       {"../config.json", "sub/config.json", "..", ".", ""}) {
    craftList(step, "config.json", name);
    expectFailure(loadCheckpoint(step),
                  "expected names of files beside it, but got \"" +
                      std::string(name) + "\"");
    std::ofstream(step + "/checkpoint.json") << list;
  }
  craftList(step, "config.json", dir / "config.json");
  expectFailure(loadCheckpoint(step), "expected names of files beside it");
  std::ofstream(step + "/checkpoint.json") << list;
  EXPECT_TRUE(loadCheckpoint(step).isOk());
  // Links lead out of it as well, each of its own contents.
  for (const char *name : {"model.safetensors", "optimizer.safetensors",
                           "config.json", "state.json", "checkpoint.json"}) {
    std::string path = step + "/" + name, outside = dir / "outside";
    std::filesystem::rename(path, outside);
    std::filesystem::create_symlink(outside, path);
    expectFailure(loadCheckpoint(step),
                  std::string(name) + " is a symbolic link, expected a file");
    std::filesystem::rename(outside, path);
  }
  std::filesystem::rename(step, dir / "moved");
  std::filesystem::create_directory_symlink(dir / "moved", step);
  expectFailure(loadCheckpoint(dir.path()), "step-3 is a symbolic link");
  // Who names the link itself has chosen where it leads.
  EXPECT_TRUE(loadCheckpoint(step).isOk());
}

TEST(CheckpointStoreTest, holdsASingleFileAgainstTheListBesideIt) {
  TemporaryDirectory dir;
  {
    CheckpointStore store = mustOpen(dir.path());
    ASSERT_TRUE(store.save(Example(3).contents).isOk());
  }
  std::string model = dir / "step-3/model.safetensors";
  EXPECT_TRUE(loadCheckpoint(model).isOk());
  flipBit(model, 8 * (readAll(model).size() - 3));
  expectFailure(loadCheckpoint(model), "model.safetensors does not have its "
                                       "checksum");
  std::filesystem::copy(model, dir / "step-3/other.safetensors");
  expectFailure(loadCheckpoint(dir / "step-3/other.safetensors"),
                "other.safetensors is not listed in checkpoint.json");
  // Alone it is what anybody's model is.
  std::filesystem::copy(model, dir / "alone.safetensors");
  EXPECT_TRUE(loadCheckpoint(dir / "alone.safetensors").isOk());
}

TEST(CheckpointStoreTest, loadsOneStepAndPlainModels) {
  TemporaryDirectory dir;
  {
    CheckpointStore store = mustOpen(dir.path());
    ASSERT_TRUE(store.save(Example(1).contents).isOk());
    ASSERT_TRUE(store.save(Example(2).contents).isOk());
  }
  for (const char *suffix : {"step-1", "step-1/"}) {
    StatusOr<Checkpoint> one = loadCheckpoint(dir / suffix);
    ASSERT_TRUE(one.isOk()) << one.status().message();
    EXPECT_EQ(one->step, 1);
  }
  std::string plain = dir / "plain";
  std::filesystem::create_directory(plain);
  std::filesystem::copy(dir / "step-2/model.safetensors", plain);
  for (const std::string &path : {plain, plain + "/model.safetensors"}) {
    StatusOr<Checkpoint> model = loadCheckpoint(path);
    ASSERT_TRUE(model.isOk()) << model.status().message();
    EXPECT_FALSE(model->canResume());
    EXPECT_TRUE(model->model.find("w"));
  }
}

TEST(CheckpointStoreTest, namesWhatIsMissing) {
  TemporaryDirectory dir;
  expectFailure(loadCheckpoint(dir / "no"), "no: No such file");
  expectFailure(loadCheckpoint(dir.path()), "holds no checkpoint");
  dir.write("model.safetensors.index.json", "{}");
  expectFailure(loadCheckpoint(dir.path()), "expected \"weight_map\"");
  dir.write("text", "this is no model");
  expectFailure(loadCheckpoint(dir / "text"),
                "text: it is no safetensors file");
  std::filesystem::create_directory(dir / "step-5");
  std::filesystem::create_directory(dir / "step-05");
  expectFailure(loadCheckpoint(dir.path()),
                "holds no complete checkpoint: " + (dir / "step-5") +
                    " is damaged (cannot open " +
                    (dir / "step-5/checkpoint.json"));
}

TEST(CheckpointStoreTest, fallsBackWhereTheNewestIsDamaged) {
  TemporaryDirectory dir;
  {
    CheckpointStore store = mustOpen(dir.path());
    ASSERT_TRUE(store.save(Example(1, 40).contents).isOk());
    ASSERT_TRUE(store.save(Example(2, 40).contents).isOk());
  }
  for (const char *name : {"model.safetensors", "optimizer.safetensors",
                           "state.json", "config.json", "checkpoint.json"}) {
    std::string path = dir / ("step-2/" + std::string(name));
    std::string good = readAll(path);
    // Every 13th bit, and cut short, and missing.
    for (size_t bit = 0; bit < 8 * good.size(); bit += 13) {
      flipBit(path, bit);
      StatusOr<Checkpoint> checkpoint = loadCheckpoint(dir.path());
      ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().message();
      // A changed key of the list may name nothing that anybody reads.
      ASSERT_TRUE(isIntact(*checkpoint)) << name << " " << bit;
      if (std::string(name) != "checkpoint.json") {
        ASSERT_EQ(checkpoint->step, 1) << name << " " << bit;
        ASSERT_EQ(checkpoint->notes.size(), 1u);
        EXPECT_NE(checkpoint->notes[0].find("step-2 is damaged ("),
                  std::string::npos);
        EXPECT_NE(checkpoint->notes[0].find("using " + (dir / "step-1")),
                  std::string::npos);
      }
      std::ofstream(path, std::ios::binary) << good;
    }
    std::ofstream(path, std::ios::binary) << good.substr(0, good.size() / 2);
    EXPECT_EQ(loadCheckpoint(dir.path())->step, 1) << name;
    std::filesystem::remove(path);
    EXPECT_EQ(loadCheckpoint(dir.path())->step, 1) << name;
    std::ofstream(path, std::ios::binary) << good;
    EXPECT_EQ(loadCheckpoint(dir.path())->step, 2) << name;
  }
  flipBit(dir / "step-2/state.json", 3);
  flipBit(dir / "step-1/state.json", 3);
  expectFailure(loadCheckpoint(dir.path()), "holds no complete checkpoint");
}

TEST(CheckpointStoreTest, protectsOtherRuns) {
  TemporaryDirectory dir;
  {
    CheckpointStore store = mustOpen(dir.path());
    expectFailure(CheckpointStore::open(dir.path()),
                  "another run (process " + std::to_string(::getpid()) +
                      ") saves into " + dir.path());
    ASSERT_TRUE(store.save(Example(10).contents).isOk());
    ASSERT_TRUE(store.save(Example(20).contents).isOk());
  }
  expectFailure(CheckpointStore::open(dir.path()),
                "already holds step-20 of another run; continue it with "
                "--resume");
  expectFailure(CheckpointStore::open(dir.path(), 10), "step-20");
  EXPECT_TRUE(CheckpointStore::open(dir.path(), 20).isOk());
  // A damaged newest one is what a resumed run steps back from: it may go on,
  // and the damaged one stays until its number is saved again, or is old.
  flipBit(dir / "step-20/model.safetensors", 999);
  expectFailure(CheckpointStore::open(dir.path()), "already holds step-20");
  CheckpointStore store = mustOpen(dir.path(), 10);
  ASSERT_TRUE(store.save(Example(15).contents).isOk());
  EXPECT_EQ(namesIn(dir.path()), (Names{"step-10", "step-15", "step-20"}));
  EXPECT_EQ(loadCheckpoint(dir.path())->step, 15);
  ASSERT_TRUE(store.save(Example(25).contents).isOk());
  ASSERT_TRUE(store.save(Example(30).contents).isOk());
  EXPECT_EQ(namesIn(dir.path()), (Names{"step-25", "step-30"}));
}

TEST(CheckpointStoreTest, replacesADamagedStep) {
  TemporaryDirectory dir;
  {
    CheckpointStore store = mustOpen(dir.path());
    ASSERT_TRUE(store.save(Example(10).contents).isOk());
    ASSERT_TRUE(store.save(Example(20).contents).isOk());
  }
  flipBit(dir / "step-20/model.safetensors", 999);
  CheckpointStore store = mustOpen(dir.path(), 10);
  ASSERT_TRUE(store.save(Example(20).contents).isOk());
  EXPECT_EQ(loadCheckpoint(dir.path())->step, 20);
  EXPECT_EQ(namesIn(dir.path()), (Names{"step-10", "step-20"}));
}

// A run goes on from the one before, and nothing that was there is lost.
TEST(CheckpointStoreTest, passesOverACheckpointWithoutItsList) {
  const std::pair<const char *, const char *> lists[] = {
      {"gone", nullptr},
      {"cut", "{\"format\": 1, \"st"},
      {"empty", ""},
      {"of another step", "{\"format\": 1, \"step\": 7, \"files\": {}}"}};
  for (auto [name, list] : lists) {
    SCOPED_TRACE(name);
    TemporaryDirectory dir;
    {
      CheckpointStore store = mustOpen(dir.path());
      ASSERT_TRUE(store.save(Example(10).contents).isOk());
      ASSERT_TRUE(store.save(Example(20).contents).isOk());
    }
    std::filesystem::remove(dir / "step-20/checkpoint.json");
    if (list)
      dir.write("step-20/checkpoint.json", list);
    const std::string weights = readAll(dir / "step-20/model.safetensors");
    expectFailure(CheckpointStore::open(dir.path()), "already holds step-20");
    StatusOr<Checkpoint> found = loadCheckpoint(dir.path());
    ASSERT_TRUE(found.isOk()) << found.status().message();
    EXPECT_EQ(found->step, 10);
    CheckpointStore store = mustOpen(dir.path(), 10);
    ASSERT_TRUE(store.save(Example(20).contents).isOk());
    EXPECT_EQ(store.takeNotes(),
              (Names{dir / "step-20 was damaged and is now " +
                     (dir / "step-20-damaged")}));
    EXPECT_EQ(loadCheckpoint(dir.path())->step, 20);
    EXPECT_EQ(namesIn(dir.path()),
              (Names{"step-10", "step-20", "step-20-damaged"}));
    EXPECT_EQ(readAll(dir / "step-20-damaged/model.safetensors"), weights);
  }
}

TEST(CheckpointStoreTest, makesItsDirectoryAgain) {
  TemporaryDirectory dir;
  CheckpointStore store = mustOpen(dir / "runs/one");
  ASSERT_TRUE(store.save(Example(1).contents).isOk());
  std::filesystem::remove_all(dir / "runs");
  ASSERT_TRUE(store.save(Example(2).contents).isOk());
  EXPECT_EQ(store.takeNotes(),
            (Names{dir / "runs/one was removed during the run, with the "
                         "checkpoints in it: it was made again"}));
  // It is locked again.
  expectFailure(CheckpointStore::open(dir / "runs/one"), "another run");
  std::filesystem::rename(dir / "runs/one", dir / "runs/two");
  std::filesystem::create_directory(dir / "runs/one");
  ASSERT_TRUE(store.save(Example(3).contents).isOk());
  EXPECT_EQ(namesIn(dir / "runs/one"), (Names{"step-3"}));
  EXPECT_EQ(namesIn(dir / "runs/two"), (Names{"step-2"}));
  // What others have put there is not this run's to remove.
  std::filesystem::rename(dir / "runs/one", dir / "runs/three");
  std::filesystem::rename(dir / "runs/two", dir / "runs/one");
  expectFailure(store.save(Example(4).contents),
                "holds checkpoints of another one");
  EXPECT_EQ(namesIn(dir / "runs/one"), (Names{"step-2"}));
}

TEST(CheckpointStoreTest, removesTheOldestFirstWhereItMay) {
  constexpr int64_t moreThanThereIs = int64_t(1) << 50;
  TemporaryDirectory dir;
  {
    auto first = CheckpointStore::open(dir.path(), -1, 4);
    ASSERT_TRUE(first.isOk());
    for (int64_t step : {1, 2, 3, 4})
      ASSERT_TRUE(first->save(Example(step).contents).isOk());
  }
  auto opened = CheckpointStore::open(dir.path(), 4, 4);
  ASSERT_TRUE(opened.isOk());
  CheckpointStore store = std::move(*opened);
  flipBit(dir / "step-4/model.safetensors", 999);
  // Where there is room nothing goes early.
  store.removeFirst({1});
  Example fails(5);
  fails.contents.model[0].data = nullptr;
  fails.contents.give = [](const TensorView &, const TakeBytes &) {
    return Status::invalidArgument("nothing comes");
  };
  expectFailure(store.save(fails.contents), "nothing comes");
  EXPECT_EQ(namesIn(dir.path()),
            (Names{"step-1", "step-2", "step-3", "step-4"}));
  // Where there is none, all goes but the newest that is whole.
  store.removeFirst({moreThanThereIs});
  expectFailure(store.save(fails.contents), "nothing comes");
  EXPECT_EQ(namesIn(dir.path()), (Names{"step-3", "step-4"}));
  EXPECT_EQ(loadCheckpoint(dir.path())->step, 3);
}

TEST(CheckpointStoreTest, aFileThatShrinksWhileItIsReadIsAFailure) {
  TemporaryDirectory dir;
  CheckpointStore store = mustOpen(dir.path());
  ASSERT_TRUE(store.save(Example(1, 100000).contents).isOk());
  StatusOr<Checkpoint> found = loadCheckpoint(dir.path());
  ASSERT_TRUE(found.isOk());
  EXPECT_TRUE(found->checkReadable().isOk());
  std::filesystem::resize_file(dir / "step-1/model.safetensors", 4096);
  std::vector<ParameterSlot> slots = {{"w", {100000}, DType::F32, nullptr}};
  int64_t taken = 0;
  expectFailure(importTensors(StoredNames(), found->model, slots,
                              [&](size_t, int64_t, int64_t, const void *) {
                                ++taken;
                                return Status::ok();
                              }),
                "model.safetensors has become shorter while it was in use");
  EXPECT_EQ(taken, 0);
  found->checksum();
  expectFailure(found->checkReadable(), "has become shorter");
}

TEST(CheckpointStoreTest, provesRoomForSeveralAndLeavesNothing) {
  TemporaryDirectory dir;
  dir.write(".dyna-tmp-room-1.tmp-5-0", "of a run that was killed");
  CheckpointStore store = mustOpen(dir.path());
  EXPECT_EQ(namesIn(dir.path()), Names());
  EXPECT_TRUE(store.proveRoom({1000, 2000}, 3).isOk());
  expectFailure(store.proveRoom({int64_t(1) << 50}, 2), "cannot write");
  EXPECT_EQ(namesIn(dir.path()), Names());
}

TEST(CheckpointStoreTest, leavesNothingHalfWhenTheDiskIsFull) {
  TemporaryDirectory dir;
  CheckpointStore store = mustOpen(dir.path());
  ASSERT_TRUE(store.save(Example(1).contents).isOk());
  // A limit on the size of files behaves as a full disk, and needs no rights.
  for (rlim_t limit : {0, 100, 2000, 4100}) {
    EXPECT_TRUE(inChild([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      rlimit limits = {limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &limits);
      Status status = store.save(Example(2).contents);
      return status.code() == StatusCode::ResourceExhausted &&
             status.message().find("size limit") != std::string::npos &&
             status.message().find('\n') == std::string::npos;
    })) << limit;
    EXPECT_EQ(namesIn(dir.path()), (Names{"step-1"}));
  }
  EXPECT_TRUE(isIntact(*loadCheckpoint(dir.path())));
}

TEST(CheckpointStoreTest, reportsAFullFileSystem) {
  // /dev/full refuses every write as a full disk does.
  if (!fileExists("/dev/full"))
    GTEST_SKIP() << "no /dev/full here";
  StatusOr<OutputFile> file = OutputFile::create("/dev/full");
  ASSERT_TRUE(file.isOk());
  Status status = file->write("x");
  expectFailure(status, "cannot write /dev/full: the disk is full; free some");
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
}

TEST(CheckpointStoreTest, reportsMissingRights) {
  TemporaryDirectory dir;
  dir.write("file", "");
  expectFailure(CheckpointStore::open(dir / "file/sub"), "file/sub: Not a dir");
  expectFailure(CheckpointStore::open(dir / "file"), "file");
  CheckpointStore store = mustOpen(dir / "d");
  ASSERT_TRUE(store.save(Example(1).contents).isOk());
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod((dir / "d").c_str(), 0555), 0);
  EXPECT_TRUE(inChild([&] {
    // Root may do everything: become somebody else.
    if (::geteuid() == 0 && ::seteuid(65534) != 0)
      return false;
    Status status = store.save(Example(2).contents);
    return status.message().find("Permission denied; check its permissions") !=
           std::string::npos;
  }));
  ASSERT_EQ(::chmod((dir / "d").c_str(), 0755), 0);
  EXPECT_EQ(namesIn(dir / "d"), (Names{"step-1"}));
}

TEST(CheckpointStoreTest, survivesKills) {
  TemporaryDirectory dir;
  int64_t step = 1;
  {
    CheckpointStore store = mustOpen(dir.path());
    ASSERT_TRUE(store.save(Example(step, 50000).contents).isOk());
  }
  // The kills must hit this machine's saves: measure what one round takes.
  auto begin = std::chrono::steady_clock::now();
  {
    CheckpointStore store = mustOpen(dir.path(), step);
    ASSERT_TRUE(store.save(Example(++step, 50000).contents).isOk());
  }
  auto span = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  uint64_t longest = uint64_t(std::max<int64_t>(4 * span.count(), 2000));
  int64_t advances = 0, remains = 0;
  for (uint64_t round = 0; round < 60; ++round) {
    pid_t child = ::fork();
    if (child == 0) {
      // Saves as fast as it can, until it is killed; sometimes the same step.
      CheckpointStore store = mustOpen(dir.path(), step);
      for (int64_t next = step;; ++next)
        if (!store.save(Example(next, 50000).contents).isOk())
          ::_exit(1);
    }
    ::usleep(static_cast<useconds_t>(dyna_mix64(round) % longest));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int state = 0;
    ::waitpid(child, &state, 0);
    ASSERT_TRUE(WIFSIGNALED(state)) << "a save failed before the kill";
    for (const std::string &name : namesIn(dir.path()))
      remains += name[0] == '.';
    StatusOr<Checkpoint> checkpoint = loadCheckpoint(dir.path());
    ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().message();
    ASSERT_TRUE(checkpoint->notes.empty()) << checkpoint->notes[0];
    ASSERT_GE(checkpoint->step, step) << "went back";
    ASSERT_TRUE(isIntact(*checkpoint));
    // On a machine that has become busy, later kills give saves more time.
    if (checkpoint->step == step)
      longest = std::min<uint64_t>(longest + longest / 4, 1000000);
    advances += checkpoint->step > step;
    step = checkpoint->step;
  }
  // Otherwise the kills came too early or too late to show anything.
  EXPECT_GT(advances, 0);
  EXPECT_GT(remains, 0);
  mustOpen(dir.path(), step);
  for (const std::string &name : namesIn(dir.path()))
    EXPECT_NE(name[0], '.') << name;
}

} // namespace
