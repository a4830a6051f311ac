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
        copy.new(folder + "order/schedules/EagerForward.cpp", given("EagerForward.cpp"))
        copy.after(folder + "order/schedules/Schedules.def", "DYNA_SCHEDULE(Sequential)\n", "DYNA_SCHEDULE(EagerForward)\n")
        copy.before(folder + "CMakeLists.txt", "    order/schedules/GPipe.cpp\n", "    order/schedules/EagerForward.cpp\n")
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
        kinds = "runtime/plan/program/BlockKinds.def"
        copy.before(kinds, "\nDYNA_OPERAND(Kept,",
                    "// Of a layer's gradients, parts of their squared norm\n"
                    'DYNA_BLOCK_KIND(Partial, "partial", Layer, ByRow, at.view.ownsParameters(layer) ? 128 : 0)\n')
        copy.after(kinds, 'DYNA_OPERAND(Workspace, "workspace", Workspace, own)\n',
                   'DYNA_OPERAND(Partial, "partial", Partial, own)\n')
        copy.replace("runtime/plan/program/Instructions.def",
                     "DYNA_INSTRUCTION(GRAD_NORM, Layer, DYNA_ROLE_GRAD_NORM, none,\n                 scratch(Workspace), reads(UpdatedGradients))",
                     "DYNA_INSTRUCTION(GRAD_NORM, Layer, DYNA_ROLE_GRAD_NORM, none,\n"
                     "                 scratch(Workspace), scratch(Partial), reads(UpdatedGradients))")
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
        copy.before("runtime/plan/program/Instructions.def", "\n#undef DYNA_INSTRUCTION",
                    "\n// Gradients of what the layer updates start from nothing\n"
                    "DYNA_INSTRUCTION(CLEAR_GRADS, Layer, nothing, none,\n"
                    "                 writes(UpdatedGradients))\n")
        order = "runtime/plan/verify/OrderChecker.cpp"
        copy.replace(order, "bool normed = false, updated = false, cast = false;",
                     "bool normed = false, updated = false, cast = false, cleared = false;")
        copy.after(order, "  case Instruction::GRAD_NORM:\n", "  case Instruction::CLEAR_GRADS:\n")
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
        copy.before("runtime/executor/run/LayerCalls.cpp", "  case Instruction::FREE:\n",
                    "  case Instruction::CLEAR_GRADS:\n"
                    "    return run.seat.clearGradients(i.layer);\n")
        add_executor_test(copy, "ClearGradientsTest.cpp")
        # Of a plan that updates nothing, so that gradients are those of one step.
        copy.before("runtime/planner/write/ProgramWriter.cpp", "  add(Instruction::LOAD, 0, m);\n  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l) {\n    waitForGather(l);\n    takeKeys(l, m);\n    add(Instruction::FORWARD",
                    "  const auto &list = program_.instructions;\n"
                    "  if (!options_.reduces() && std::none_of(list.begin(), list.end(), [](const Instruction &i) {\n"
                    "        return i.op == Instruction::FORWARD;\n"
                    "      }))\n"
                    "    forOwners(Instruction::CLEAR_GRADS, false);\n")
        copy.before("test/runtime/plan/InstructionFieldsTest.cpp", "  // No instruction was forgotten.\n",
                    "  PlanOptions gradients = tinyPlanOptions();\n"
                    "  gradients.update = false;\n"
                    "  ExecutableGraph one = onOneRank(modelWithDegrees());\n"
                    "  walk.run(one, *Planner(one).training(equalLengths, 100, gradients), equalLengths);\n")

    def try_runtime(self, build):
        build.gtest("dyna_executor_test", "ClearGradientsTest.*", at_least=4)
        build.gtest("dyna_plan_test")
        build.gtest("dyna_executor_test", "-ScrambledPlansTest.*")

    def try_compiler(self, build):
        build.gtest("exec_translation_test")


class ElementwiseOp:
    """`dyna.square`, whose gradient is said with ops that there are."""
    kind = "element-wise op"
    targets = []
    compiler_targets = ["dyna-opt", "op_facts_test", "ReferenceGradientTest", "CodegenCpuTest",
                        "ReferenceLayoutRulesTest", "ReferenceDistributedTest"]

    def edit(self, copy):
        copy.before("dialects/dyna/DynaModelOps.td", 'def Dyna_ReluOp : Dyna_UnaryOp<"relu"',
                    'def Dyna_SquareOp : Dyna_UnaryOp<"square", "Element-wise square.", "`x * x`.">;\n')
        copy.before("dialects/dyna/DynaGradients.cpp", "void ReluOp::buildGradient(GradientBuilder &gradients) {\n",
                    "/// 2 x dy, as a sum.\n"
                    "void SquareOp::buildGradient(GradientBuilder &gradients) {\n"
                    "  if (!gradients.wants(getX()))\n"
                    "    return;\n"
                    "  Value half =\n"
                    "      MulOp::create(gradients.builder(), getLoc(), getX().getType(),\n"
                    "                    gradients.gradientOf(getResult()), gradients.use(getX()));\n"
                    "  gradients.add(getX(), half);\n"
                    "  gradients.add(getX(), half);\n"
                    "}\n\n")
        rules = "passes/distribute/deduce/LayoutRules.cpp"
        copy.before(rules, "static FactorRule ruleOf(ReluOp op)",
                    "static FactorRule ruleOf(SquareOp op) { return elementwise(op); }\n")
        copy.replace(rules, "SiluOp, ReluOp, AddOp,", "SiluOp, ReluOp, SquareOp, AddOp,")
        rows = "codegen/rows/RowOps.cpp"
        copy.before(rows, "/// Emits x if it is positive or NaN, else 0.\n",
                    "static Value emit(RowPiece &row, SquareOp op) {\n"
                    "  Value x = row.get(op.getX());\n"
                    "  return row.code().mul(x, x);\n"
                    "}\n\n")
        copy.replace(rows, "PositionsOp, ReluOp, ReluGradOp,", "PositionsOp, SquareOp, ReluOp, ReluGradOp,")
        self.edit_reference(copy)
        copy.before("test/passes/distribute/layout-rules.mlir", "  // expected-remark @+1 {{'[t, n] -> [t, n]'}}\n  %2 = dyna.relu",
                    "  // expected-remark @+1 {{'[t, n] -> [t, n]'}}\n  %square = dyna.square %x : tensor<?x8xf32>\n")
        copy.before("docs/ops.md", "| `dyna.sum_squares`", "| `dyna.square` | Element-wise square. |\n")
        copy.new("test/passes/memory/square.mlir", given("square.mlir"))

    def edit_reference(self, copy):
        """The reference evaluator, which knows no lowering, and the list of layers that it tries."""
        evaluator, model = "test/reference/Evaluator.cpp", "test/reference/ModelEvaluator.cpp"
        copy.before(evaluator, "static void run(ReluOp op, Frame &f) {\n",
                    "static void run(SquareOp op, Frame &f) {\n"
                    "  f.set(op.getResult(), mul(f.tensor(op.getX()), f.tensor(op.getX())));\n"
                    "}\n")
        copy.replace(evaluator, "SiluOp, ReluOp,", "SiluOp, ReluOp, SquareOp,")
        copy.before(model, "static void reverse(ReluOp op, const Tensor &dy, Tape &tape) {\n",
                    "static void reverse(SquareOp op, const Tensor &dy, Tape &tape) {\n"
                    "  Tensor half = mul(tape.tensor(op.getX()), dy);\n"
                    "  tape.add(op.getX(), half);\n"
                    "  tape.add(op.getX(), half);\n"
                    "}\n")
        copy.replace(model, "SiluOp, ReluOp, DropoutOp,", "SiluOp, ReluOp, SquareOp, DropoutOp,")
        copy.before("test/reference/LayerCases.inc", '    {"relu", R"(', given("square.inc"))
        copy.before("test/codegen/cpu/RowsLoweringTest.cpp", '      {"dyna.relu %x : $A", [](double x)',
                    '      {"dyna.square %x : $A", [](double x) { return x * x; }},\n')
        copy.before("test/reference/DistributedTest.cpp", '    {"Relu", "$out = dyna.relu $in',
                    '    {"SquareOp", "$out = dyna.square $in : tensor<?x12xf64>"},\n')

    def try_runtime(self, build):
        pass

    def try_compiler(self, build):
        # It parses, differentiates, is fused into a sweep that becomes a loop; the page of ops knows it.
        build.lit("test/passes/memory/square.mlir", "test/passes/distribute/layout-rules.mlir", "test/docs/ops.test",
                  "test/dialects/dyna/constraints.test")
        build.gtest("op_facts_test")
        # Finite differences, compiled code against the formula, sums over ranks in front of it.
        build.gtest("ReferenceGradientTest", "*square*", at_least=1)
        build.gtest("CodegenCpuTest", "*RowsTest.Unary*", at_least=3)
        build.gtest("ReferenceLayoutRulesTest")
        build.gtest("ReferenceDistributedTest", "*SquareOp*", at_least=1)


class Pass:
    """Products of a value with itself become squares, in front of the sweeps."""
    kind = "pass"
    targets = []
    compiler_targets = ["dyna-opt"]

    def edit(self, copy):
        folder = "passes/memory/"
        copy.new(folder + "MergeSquares.cpp", given("MergeSquares.cpp"))
        copy.before(folder + "Passes.td", "def JoinProducts : Pass<", given("MergeSquares.td"))
        copy.replace(folder + "CMakeLists.txt", " place/MemoryPlan.cpp ", " MergeSquares.cpp place/MemoryPlan.cpp ")
        copy.after("passes/Pipelines.cpp", "  manager.addPass(createSetTarget(target));\n",
                   "  // Before sweeps are made: ops inside of one are not looked at.\n"
                   "  manager.addNestedPass<FunctionOp>(createMergeSquares());\n")
        copy.new("test/passes/memory/merge-squares.mlir", given("merge-squares.mlir"))

    def try_runtime(self, build):
        pass

    def try_compiler(self, build):
        build.expect(["dyna-opt", "--help"], "--dyna-merge-squares")
        build.lit("test/passes/memory/merge-squares.mlir", "test/passes/memory/memory-phase.test")
        build.walk_passes("dyna-merge-squares")


def add_executor_test(copy, name):
    copy.new(f"test/runtime/executor/{name}", given(name))
    copy.before("test/runtime/executor/CMakeLists.txt", "    ExecutorTest.cpp\n", f"    {name}\n")


EXTENSIONS = [Schedule(), MemoryKind(), Instruction(), ElementwiseOp(), Pass()]
