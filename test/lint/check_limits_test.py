"""check_limits.py notices each kind of limit in seconds, and nothing else."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_limits import violations  # noqa: E402

CASES = [  # (what, file, text, lines of the faults)
    ("a run", "test/a.py", "subprocess.run(words, timeout=60)\n", [1]),
    ("a default", "test/a.py", "def run(words, timeout=60.5):\n  pass\n", [1]),
    ("a wait", "test/a.py", "process.wait(30)\n", [1]),
    ("an end of waiting", "test/a.py", "first()\nlimit = time.monotonic() + 60\n", [2]),
    ("time that passed", "test/a.py", "self.assertLess(time.monotonic() - begin, 2 * deadline)\n", [1]),
    ("at least some time", "test/a.py", "self.assertGreaterEqual(time.monotonic() - begin, 5)\n", []),
    ("a flag of a program", "test/a.py", 'words = [program, "--timeout=4"]\n', [1]),
    ("patience", "test/a.py", "process.wait(timeout=PATIENCE)\nlimit = time.monotonic() + PATIENCE\n", []),
    ("a multiple", "test/a.py", 'words = [program, f"--timeout={took.times(2)}"]\n', []),
    ("a tested limit", "test/a.py", "# It never comes (limit-is-tested).\nprocess.wait(30)\n", []),
    ("an excuse further above", "test/a.py", "# limit-is-tested\n\n\nprocess.wait(30)\n", [4]),
    ("a deadline", "test/A.cpp", "auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);\n", [1]),
    ("one of two lines", "test/A.h", "auto end =\n    Clock::now() +\n    std::chrono::minutes(1);\n", [2]),
    ("a transport's", "test/A.cpp", "transport.setTimeout(std::chrono::seconds(60));\n", [1]),
    ("a condition's", "test/A.cpp", "m.arrived.wait_for(lock, std::chrono::seconds(30),\n  holds);\n", [1]),
    ("time that passed there", "test/A.cpp", "EXPECT_LT(Clock::now() - begin, five);\n", [1]),
    ("a flag there", "test/A.cpp", 'run({"--timeout=3"});\n', [1]),
    ("patience there", "test/A.cpp", "t.setTimeout(kPatience);\nauto end = patienceEnds();\n", []),
    ("a sleep", "test/A.cpp", "std::this_thread::sleep_for(std::chrono::milliseconds(20));\n", []),
    ("of a test of CTest", "test/CMakeLists.txt", "set_tests_properties(a PROPERTIES TIMEOUT 600)\n", [1]),
    ("of all tests", "cmake/A.cmake", "gtest_discover_tests(a PROPERTIES TIMEOUT 600)\n", [1]),
    ("of none", "test/CMakeLists.txt", "set_tests_properties(a PROPERTIES TIMEOUT ${DYNA_TEST_TIMEOUT})\n", []),
    ("a command", "test/a.test", "# RUN: timeout 10 dyna-opt %s\n", [1]),
    ("a command with an option", "test/a.mlir", "// RUN: timeout -k 5 10 dyna-opt %s\n", [1]),
    ("the product", "runtime/A.cpp", "transport.setTimeout(std::chrono::seconds(60));\n", []),
]

failures = 0
for what, name, text, expected in CASES:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        faults = violations(pathlib.Path(folder))
        starts = [f"{name}:{line}: " for line in expected]
        if len(faults) != len(starts) or not all(map(str.startswith, faults, starts)):
            failures += 1
            print(f"{what}: expected faults {starts}, got {faults}")
if failures:
    sys.exit(f"{failures} of {len(CASES)} cases fail")
print(f"{len(CASES)} cases pass")
