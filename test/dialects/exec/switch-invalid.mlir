// RUN: dyna-opt %s -split-input-file -verify-diagnostics

// SWITCH1: nothing of that name.
// expected-error @+1 {{expects @l to be an exec.graph}}
exec.switch_plan values of @s home @l {
}

// -----

// SWITCH1: other numbers of ranks.
exec.graph @s "dp=3" on <dp=3, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{expects graphs of equally many ranks, but @s has 3 and @l has 2}}
exec.switch_plan values of @s home @l {
}

// -----

// SWITCH2: from home to home.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{leads from @l to itself, where nothing moves}}
exec.switch_plan values of @l home @l {
}

// -----

// SWITCH2: behind itself.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{expects 'behind' to be another graph than @s and home, but got @s}}
exec.switch_plan values of @s behind @s home @l {
}

// -----

// SWITCH2: gradients behind a phase.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{is of gradients, which go home whatever phase was before: expects no 'behind'}}
exec.switch_plan gradients of @s behind @a home @l {
}

// -----

// SWITCH3: the order.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  bucket {
  }
  // expected-error @+1 {{stands in the wrong place: an exec.switch_plan lists tensors, then buckets}}
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
}

// -----

// SWITCH3: something else.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  // expected-error @+1 {{is no part of an exec.switch_plan, which lists tensors, then buckets}}
  builtin.module {
  }
}

// -----

// SWITCH4: a rank that there is not.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{switch: tensor 0 lies on rank 2, but there are 2 (S1)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 2 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
}

// -----

// SWITCH4: a tensor that there is not.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{switch: bucket 0 moves tensor 1, but there are 1 (S1)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    transfer tensor 1 [0:4, 0:3] from 0 to 0
  }
}

// -----

// SWITCH4: what a rank needs overlaps.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{which overlap (S1)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 0 [0:8, 0:3]]
}

// -----

// SWITCH5: after itself.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{switch: bucket 0 comes after bucket 0 (S2)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket after 0 {
    transfer tensor 0 [0:4, 0:3] from 0 to 0
    transfer tensor 0 [0:4, 0:3] from 0 to 1
    transfer tensor 0 [4:8, 0:3] from 1 to 0
    transfer tensor 0 [4:8, 0:3] from 1 to 1
  }
}

// -----

// SWITCH6: from a rank that does not have it.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{from rank 0 to rank 0 in bucket 0, but rank 0 does not have it (S3)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    transfer tensor 0 [0:4, 0:3] from 0 to 0
    transfer tensor 0 [0:4, 0:3] from 0 to 1
    transfer tensor 0 [4:8, 0:3] from 0 to 0
    transfer tensor 0 [4:8, 0:3] from 1 to 1
  }
}

// -----

// SWITCH6: handed on in the bucket that brings it.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{but rank 0 does not have it (S3)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    transfer tensor 0 [0:4, 0:3] from 0 to 0
    transfer tensor 0 [4:8, 0:3] from 1 to 0
    transfer tensor 0 [4:8, 0:3] from 1 to 1
    transfer tensor 0 [0:4, 0:3] from 0 to 1 source new
  }
}

// -----

// SWITCH7: to a rank that does not need it.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{but rank 1 does not need it (S4)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3]]
  bucket {
    transfer tensor 0 [0:4, 0:3] from 0 to 0
    transfer tensor 0 [0:4, 0:3] from 0 to 1
    transfer tensor 0 [4:8, 0:3] from 1 to 0
    transfer tensor 0 [4:8, 0:3] from 1 to 1
  }
}

// -----

// SWITCH7: not handed on.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{is not handed on (S4)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    transfer tensor 0 [0:4, 0:3] from 0 to 0
    transfer tensor 0 [0:4, 0:3] from 0 to 1
    transfer tensor 0 [4:8, 0:3] from 1 to 0
    transfer tensor 0 [4:8, 0:3] from 1 to 1
    transfer tensor 0 [0:4, 0:3] from 0 to 1 target passing
  }
}

// -----

// SWITCH8: a box that does not arrive.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{switch: tensor 0: 12 of 24 elements arrive at rank 1 (S5)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    transfer tensor 0 [0:4, 0:3] from 0 to 0
    transfer tensor 0 [0:4, 0:3] from 0 to 1
    transfer tensor 0 [4:8, 0:3] from 1 to 0
  }
}

// -----

// SWITCH8: a box that arrives twice.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{arrives twice at rank 1 (S5)}}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    transfer tensor 0 [0:4, 0:3] from 0 to 0
    transfer tensor 0 [0:4, 0:3] from 0 to 1
    transfer tensor 0 [4:8, 0:3] from 1 to 0
    transfer tensor 0 [4:8, 0:3] from 1 to 1
    transfer tensor 0 [0:4, 0:3] from 0 to 1
  }
}

// -----

// SWITCH8: a gradient that is added at two ranks.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{arrives twice at all ranks together (S5)}}
exec.switch_plan gradients of @s home @l {
  tensor @w gradient element_bytes 4 from [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    transfer tensor 0 [0:8, 0:3] from 0 to 0
    transfer tensor 0 [0:8, 0:3] from 0 to 1
  }
}

// -----

// TENSOR1: ends before it begins.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  // expected-error @+1 {{expects rows and columns from 0 to 2147483647, the end not before the begin, but got 4:3}}
  tensor @w master element_bytes 4 from [rank 0 [4:3, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
}

// -----

// TENSOR1: a negative rank.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  // expected-error @+1 {{expects ranks from 0 on, but got -1}}
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank -1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
}

// -----

// TENSOR1: numbers are missing.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  // expected-error @+1 {{expects five numbers for each box, but got 6 in all}}
  "exec.tensor"() {parameter = @w, part = 0 : i32, element_bytes = 4 : i64, from = array<i64: 0, 0, 1, 0, 1, 7>, to = array<i64>} : () -> ()
}

// -----

// TENSOR2: elements of nothing.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  // expected-error @+1 {{expects 'element_bytes' to be 1 at least, but got 0}}
  tensor @w master element_bytes 0 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
}

// -----

// TENSOR3: a gradient among values.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  // expected-error @+1 {{is the gradient of a parameter, but the switch is of values}}
  tensor @w gradient element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
}

// -----

// BUCKET1: something else.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    // expected-error @+1 {{is no part of an exec.bucket, which lists transfers}}
    builtin.module {
    }
  }
}

// -----

// TRANSFER1: too large.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    // expected-error @+1 {{but got 0:2147483648}}
    transfer tensor 0 [0:2147483648, 0:3] from 0 to 0
  }
}

// -----

// TRANSFER1: numbers are missing.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    // expected-error @+1 {{expects four numbers for its box, but got 2}}
    "exec.transfer"() {tensor = 0 : i32, box = array<i64: 0, 1>, from = 0 : i32, to = 0 : i32} : () -> ()
  }
}

// -----

// TRANSFER2: to where it lay.
exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}
exec.switch_plan values of @s home @l {
  tensor @w master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
  bucket {
    // expected-error @+1 {{has the target 'old', but expects 'new' or 'passing'}}
    transfer tensor 0 [0:4, 0:3] from 0 to 0 target old
  }
}
