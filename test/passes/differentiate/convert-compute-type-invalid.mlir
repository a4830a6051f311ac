// RUN: not dyna-opt %s -dyna-convert-compute-type=type=f16 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not dyna-opt %s -dyna-differentiate -dyna-convert-compute-type=type=bf16 2>&1 | FileCheck %s --check-prefix=LATE

// TYPE: error: expects the compute type f64, f32 or bf16, but got 'f16'
// LATE: error: 'dyna.function' op is there already, in its own compute type; convert before differentiating
dyna.layer @relu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.relu %x : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
