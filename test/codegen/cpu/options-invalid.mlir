// RUN: not dyna-opt %s --dyna-convert-to-cpu=matmul=fast 2>&1 | FileCheck %s --check-prefix=MATMUL
// RUN: not dyna-opt %s --dyna-convert-to-cpu=vector-bits=48 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not dyna-opt %s --dyna-convert-to-cpu=streaming-bytes=-5 2>&1 | FileCheck %s --check-prefix=STREAMING

// MATMUL: error: expects matmul 'library' or 'generated', but got 'fast'
// BITS: error: expects vector-bits 128, 256 or 512, but got 48
// STREAMING: error: expects streaming-bytes not to be negative, but got -5
module {}
