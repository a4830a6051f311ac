"""One extension of each kind that docs/contributing.md counts files of: what it changes, and how it is tried.

Every edit names the text that it stands beside, as a person would look for it. What is edited under test/ makes the
extension known to tests that exist, or adds one; only files of the product are counted.
"""
import json
import pathlib

INPUTS = pathlib.Path(__file__).parent / "Inputs"


def given(name):
    return (INPUTS / name).read_text()


class Schedule:
    """1F1B with nearly twice the forwards ahead."""
    kind = "schedule"
    targets = ["dyna_planner_test", "dyna_executor_test", "dyna_tiny_train"]
    compiler_targets = ["dyna-opt", "dyna-translate"]

    def edit(self, copy):
        folder = "runtime/planner/"
        copy.new(folder + "schedules/EagerForward.cpp", given("EagerForward.cpp"))
        copy.after(folder + "schedules/Schedules.def", "DYNA_SCHEDULE(Sequential)\n", "DYNA_SCHEDULE(EagerForward)\n")
        copy.before(folder + "CMakeLists.txt", "    schedules/GPipe.cpp\n", "    schedules/EagerForward.cpp\n")
        copy.new("test/passes/plan/eager.test", given("eager.test"))

    def try_runtime(self, build):
        build.gtest("dyna_planner_test", "*SchedulesTest*Of_eager*", at_least=2)
        build.gtest("dyna_planner_test")
        # On ranks, against one rank.
        build.gtest("dyna_executor_test", "EverySchedule/*", at_least=8)
        build.expect(["dyna_tiny_train", "--help"], "eager, one forward, one backward in turn, more of them ahead")
        build.expect(self.training(build, "zigzag"), "eager", fails=True)
        losses = [self.losses(build, name) for name in ("1f1b", "eager")]
        build.check(losses[0] == losses[1] and len(losses[0]) == 3, f"losses of two schedules are {losses}")

    def training(self, build, schedule):
        corpus = build.work / "corpus"
        corpus.mkdir(exist_ok=True)
        for index in range(6):
            (corpus / str(index)).write_text("a word and another one " * (index + 1))
        return ["dyna_tiny_train", f"--data={corpus}", "--steps=3", "--tokens-per-batch=256", "--tokens-per-micro-batch=64",
                f"--pipeline={schedule}", f"--metrics={build.work}/{schedule}.jsonl"]

    def losses(self, build, schedule):
        metrics = build.work / f"{schedule}.jsonl"
        metrics.unlink(missing_ok=True)
        build.expect(self.training(build, schedule), "")
        return [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]

    def try_compiler(self, build):
        build.lit("test/passes/plan/eager.test", "test/passes/plan/dyna-plan.test", "test/passes/plan/dyna-plan-invalid.test")


class MemoryKind:
    """What a gradient norm adds up by parts: one block for each layer."""
    kind = "kind of memory"
    targets = ["dyna_plan_test", "dyna_executor_test"]
    compiler_targets = []

    def edit(self, copy):
        kinds = "runtime/plan/BlockKinds.def"
        copy.before(kinds, "\nDYNA_OPERAND(Kept,",
                    "// Of a layer's gradients, parts of their squared norm\n"
                    'DYNA_BLOCK_KIND(Partial, "partial", Layer, view_.ownsParameters(layer) ? 128 : 0)\n')
        copy.after(kinds, 'DYNA_OPERAND(Workspace, "workspace", Workspace, own)\n',
                   'DYNA_OPERAND(Partial, "partial", Partial, own)\n')
        copy.replace("runtime/plan/Instructions.def",
                     "DYNA_INSTRUCTION(GRAD_NORM, Layer, DYNA_ROLE_GRAD_NORM, none,\n                 scratch(Workspace))",
                     "DYNA_INSTRUCTION(GRAD_NORM, Layer, DYNA_ROLE_GRAD_NORM, none,\n"
                     "                 scratch(Workspace), scratch(Partial))")
        add_executor_test(copy, "PartialBlockTest.cpp")

    def try_runtime(self, build):
        build.gtest("dyna_executor_test", "PartialBlockTest.*", at_least=3)
        # Every field and place of every instruction, and blocks that live as rows say.
        build.gtest("dyna_plan_test")
        build.gtest("dyna_executor_test", "-ScrambledPlansTest.*")

    def try_compiler(self, build):
        pass


class Instruction:
    """Gradients start from nothing, whatever a step before has left."""
    kind = "instruction"
    targets = ["dyna_plan_test", "dyna_executor_test"]
    compiler_targets = ["exec_translation_test"]

    def edit(self, copy):
        copy.before("runtime/plan/Instructions.def", "\n#undef DYNA_INSTRUCTION",
                    "\n// Gradients of what the layer updates start from nothing\n"
                    "DYNA_INSTRUCTION(CLEAR_GRADS, Layer, nothing, none,\n"
                    "                 writes(UpdatedGradients))\n")
        order = "runtime/plan/OrderChecker.cpp"
        copy.replace(order, "bool normed = false, updated = false, cast = false;",
                     "bool normed = false, updated = false, cast = false, cleared = false;")
        copy.before(order, "  if (i.op == Instruction::CAST_PARAMS) {\n",
                    "  if (i.op == Instruction::CLEAR_GRADS) {\n"
                    "    for (const auto &[m, progress] : progress_)\n"
                    "      if (progress.forward > view_.firstLayer())\n"
                    '        return fail("cleared after a micro-batch has passed forward");\n'
                    "    if (own.cleared)\n"
                    '      return fail("cleared twice");\n'
                    "    own.cleared = true;\n"
                    "    return Status::ok();\n"
                    "  }\n")
        copy.before("runtime/executor/LayerCalls.cpp", "  case Instruction::FREE:\n",
                    "  case Instruction::CLEAR_GRADS:\n"
                    "    return run.seat.clearGradients(i.layer);\n")
        add_executor_test(copy, "ClearGradientsTest.cpp")
        # The planner writes none: the walk over all fields gets a plan by hand.
        copy.before("test/runtime/plan/InstructionFieldsTest.cpp", "  // No instruction was forgotten.\n",
                    "  ExecutableGraph one = onOneRank(modelWithDegrees());\n"
                    "  plan::Plan clears = *Planner(one).training(equalLengths, 100, tinyPlanOptions());\n"
                    "  for (int layer = one.model().layers() - 1; layer >= 0; --layer)\n"
                    "    if (one.replicaView(0).ownsParameters(layer)) {\n"
                    "      Instruction clear;\n"
                    "      clear.op = Instruction::CLEAR_GRADS;\n"
                    "      clear.layer = layer;\n"
                    "      auto &list = clears.ranks[0].instructions;\n"
                    "      list.insert(list.begin(), clear);\n"
                    "    }\n"
                    "  walk.run(one, clears, equalLengths);\n")

    def try_runtime(self, build):
        build.gtest("dyna_executor_test", "ClearGradientsTest.*", at_least=3)
        build.gtest("dyna_plan_test")
        build.gtest("dyna_executor_test", "-ScrambledPlansTest.*")

    def try_compiler(self, build):
        build.gtest("exec_translation_test")


def add_executor_test(copy, name):
    copy.new(f"test/runtime/executor/{name}", given(name))
    copy.before("test/runtime/executor/CMakeLists.txt", "    ExecutorTest.cpp\n", f"    {name}\n")


EXTENSIONS = [Schedule(), MemoryKind(), Instruction()]
