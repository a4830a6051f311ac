// The generator's modules parse, verify, are the same each time, and pass the phases.
// RUN: dyna-random-module --seed=5 --count=3 > %t.first
// RUN: dyna-random-module --seed=5 --count=3 > %t.second
// RUN: cmp %t.first %t.second
// RUN: dyna-opt %t.first --dyna-convert-compute-type=type=bf16 --dyna-differentiate | FileCheck %s

// CHECK-DAG: dyna.model @m5(
// CHECK-DAG: dyna.model @m6(
// CHECK-DAG: dyna.model @m7(
// CHECK-DAG: dyna.function @m6.head.forward
