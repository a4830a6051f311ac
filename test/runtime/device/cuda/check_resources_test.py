"""check_resources.py on a text of two kernels: right, and with one fault each."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).with_name("check_resources.py")
PTX = """.visible .entry plain(.param .b8 x[8]) { ret; }
.visible .entry tiled(.param .b8 x[8]) { ldmatrix.sync; mma.sync; mma.sync; mma.sync; ret; }
"""
LOG = """ptxas info    : Compiling entry function 'plain' for 'sm_80'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers
ptxas info    : Compiling entry function 'tiled' for 'sm_80'
ptxas info    : Function properties for tiled
    8 bytes stack frame, 4 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers
"""
LIMITS = "# pattern\nplain 40\ntil.* 255 spilled=16 products=3\n"


def check(name, ptx=PTX, log=LOG, limits=LIMITS, says=None):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "kernels.ptx").write_text(ptx)
        if log is not None:
            (folder / "kernels.sm_80.cubin.log").write_text(log)
        (folder / "limits.txt").write_text(limits)
        done = subprocess.run([sys.executable, CHECK, folder, folder / "limits.txt"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    if (done.returncode == 0) != (says is None) or (says or "2 kernels, 1 architectures, most registers: 255, 0 faults") not in done.stdout:
        sys.exit(f"{name}: exit code {done.returncode}, said\n{done.stdout}expected {says or 'nothing'}")


check("right")
check("registers", log=LOG.replace("Used 40", "Used 41"), says="plain, sm_80: 41 registers, 40 are allowed")
check("spills", log=LOG.replace("16 bytes spill loads", "17 bytes spill loads"), says="tiled, sm_80: stack, spill stores and loads of 8, 4, 17 bytes")
check("spills of others", log=LOG.replace("0 bytes stack frame", "8 bytes stack frame", 1), says="plain, sm_80: stack")
check("products", ptx=PTX.replace("mma.sync; ret", "ret"), says="tiled: 2.00 products for each load, 3.0 is asked for")
check("no ratio", limits=LIMITS.replace(" products=3", ""), says="tiled: 3.00 products for each load, a number is asked for")
check("no limit", limits=LIMITS.replace("plain 40\n", ""), says="plain, sm_80: 40 registers, 0 are allowed")
check("no kernel", limits=LIMITS + "gone 5\n", says="gone matches no kernel")
check("no log", log=None, says="0 logs of 2 kernels")
check("log of fewer", log=LOG[:LOG.index("ptxas info    : Compiling entry function 'tiled'")], says="1 kernels, 1 frames")
check("stack in the text", ptx=PTX.replace("ret; }", ".local .b8 s[8]; ret; }", 1), says="kernels.ptx has")
check("unknown word", limits=LIMITS.replace("spilled", "spilt"), says="what is spilt?")
