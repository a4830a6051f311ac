// RUN: dyna-opt %s --verify-roundtrip | FileCheck %s
// RUN: dyna-opt %s -mlir-print-op-generic | dyna-opt | FileCheck %s

// Ops in a list are written without the dialect.
// CHECK:      exec.graph @a "dp=1,tp=2,pp=2" on <dp=1, pp=2, tp=2> {
// CHECK-NEXT:   stage ["embed", "h.0"]
// CHECK-NEXT:   stage ["head"]
// CHECK-NEXT:   parameter @wte <{{\[\[}}tp:2/1], []] on <dp=1, pp=2, tp=2>> holders {{\[\[}}0, 2], [1, 3]]
// CHECK-NEXT: }
exec.graph @a "dp=1,tp=2,pp=2" on <dp=1, pp=2, tp=2> {
  exec.stage ["embed", "h.0"]
  stage ["head"]
  parameter @wte <[[tp:2/1], []] on <dp=1, pp=2, tp=2>> holders [[0, 2], [1, 3]]
}

// A hash is 64 bits without sign; what is 0 may be left out; fields come in any order; a block without a place is
// not taken, which is not the same as place 0.
// CHECK:      exec.plan @p of @a model 0xFFFFFFFFFFFFFFFE target_tokens 35 lengths [30, 5] {
// CHECK-NEXT:   micro_batch replica 0 [sample 0 length 30, sample 1 begin 2 length 3]
// CHECK-NEXT:   micro_batch replica 1 []
// CHECK-NEXT:   micro_batch replica 0 [sample 2 stream 1 begin 4 length 2 key_begin 1 key_end 8, sample 3 length 9 key_stream 1]
// CHECK-NEXT:   micro_batch replica 0 [sample 4 stream 2 length 2]
// CHECK-NEXT:   rank 0 dynamic_bytes 8192 {
// CHECK-NEXT:     do load micro_batch 1 batch 4096 kept 64
// CHECK-NEXT:     do forward layer 3 micro_batch 0 recompute selective late 1024 next 4096 workspace 8192
// CHECK-NEXT:     do recompute layer 3 micro_batch 0 recompute full{{$}}
// CHECK-NEXT:     do recv_grad_start layer 3 micro_batch 0 gradient 0
// CHECK-NEXT:     do send_act_start layer 3 micro_batch 0{{$}}
// CHECK-NEXT:     do combine_norm
// CHECK-NEXT:     do reduce_grads_start layer 3{{$}}
// CHECK-NEXT:     do gather_params_start layer 3 parameter 2
// CHECK-NEXT:     do switch_start phase 1 bucket 3
// CHECK-NEXT:     do switch_grads_wait phase 0 bucket 0
// CHECK-NEXT:   }
// CHECK-NEXT:   rank 1 dynamic_bytes 0 {
// CHECK-NEXT:   }
// CHECK-NEXT: }
exec.plan @p of @a model 0xFFFFFFFFFFFFFFFE target_tokens 35 lengths [30, 5] {
  micro_batch replica 0 [sample 0 length 30, sample 1 begin 2 length 3]
  micro_batch replica 1 []
  micro_batch replica 0 [sample 2 stream 1 begin 4 length 2 key_stream 0 key_begin 1 key_end 8, sample 3 length 9 key_stream 1]
  micro_batch replica 0 [sample 4 stream 2 length 2 key_begin 0]
  rank 0 dynamic_bytes 8192 {
    do load batch 4096 kept 64 micro_batch 1
    do forward workspace 8192 layer 3 recompute selective late 1024 next 4096
    do recompute layer 3 recompute full
    do recv_grad_start layer 3 micro_batch 0 gradient 0
    do send_act_start layer 3 micro_batch 0
    do combine_norm
    do reduce_grads_start layer 3 parameter 0
    do gather_params_start parameter 2 layer 3
    do switch_start phase 1 bucket 3
    do switch_grads_wait phase 0 bucket 0
  }
  rank 1 dynamic_bytes 0 {
  }
}

// Drafts: micro-batches alone, and what a rank computes for them. What is not said is not written.
// CHECK:      exec.plan @d of @a model 0x0000000000000001 target_tokens 5 lengths [5]
// CHECK-SAME:   draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 64, recompute = "none"> {
// CHECK-NEXT:   micro_batch replica 0 [sample 0 length 5]
// CHECK-NEXT: }
exec.plan @d of @a model 1 target_tokens 5 lengths [5]
    draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 64, recompute = "none", rank_memory = 0> {
  micro_batch replica 0 [sample 0 length 5]
}

// CHECK:      exec.plan @e of @a model 0x0000000000000001 target_tokens 5 fallback "adaptive"
// CHECK-SAME:   draft <schedule = "gpipe", in_flight = 3, tokens_per_micro_batch = 64, recompute = "none,full",
// CHECK-SAME:   split_backward = true, evaluate = true, rank_memory = 1000> {
// CHECK-NEXT:   micro_batch replica 0 [sample 0 length 5]
// CHECK-NEXT:   rank 0 dynamic_bytes 0 {
// CHECK-NEXT:     do load micro_batch 0{{$}}
// CHECK-NEXT:     do recompute layer 0 micro_batch 0 recompute full{{$}}
exec.plan @e of @a model 1 target_tokens 5 fallback "adaptive"
    draft <schedule = "gpipe", in_flight = 3, tokens_per_micro_batch = 64, recompute = "none,full", evaluate = true,
           split_backward = true, rank_memory = 1000> {
  micro_batch replica 0 [sample 0 length 5]
  rank 0 dynamic_bytes 0 {
    do load micro_batch 0
    do recompute layer 0 micro_batch 0 recompute full
  }
}

// A step of two graphs; what is old and new is not written.
// CHECK:      exec.graph @l
exec.graph @l "dp=4" on <dp=4, pp=1, tp=1> {
  stage ["embed", "h.0", "head"]
}
// CHECK:      exec.orchestration home @l {
// CHECK-NEXT:   turn @a lengths 0 to 64
// CHECK-NEXT:   turn @l lengths 65{{$}}
// CHECK-NEXT: }
exec.orchestration home @l {
  turn @a lengths 0 to 64
  turn @l lengths 65
}
// CHECK:      exec.switch_plan values of @a home @l {
// CHECK-NEXT:   tensor @w copy element_bytes 2 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]] to [rank 2 [0:8, 0:2], rank 3 [2:6, 0:3]]
// CHECK-NEXT:   bucket {
// CHECK-NEXT:     transfer tensor 0 [0:4, 0:2] from 0 to 2{{$}}
// CHECK-NEXT:     transfer tensor 0 [4:8, 0:2] from 1 to 2
// CHECK-NEXT:     transfer tensor 0 [4:6, 2:3] from 1 to 3
// CHECK-NEXT:     transfer tensor 0 [2:4, 2:3] from 0 to 1 target passing
// CHECK-NEXT:   }
// CHECK-NEXT:   bucket after 0 {
// CHECK-NEXT:     transfer tensor 0 [2:4, 0:2] from 2 to 3 source new
// CHECK-NEXT:     transfer tensor 0 [4:6, 0:2] from 2 to 3 source new
// CHECK-NEXT:     transfer tensor 0 [2:4, 2:3] from 1 to 3 source passing
// CHECK-NEXT:   }
// CHECK-NEXT: }
exec.switch_plan values of @a home @l {
  tensor @w copy element_bytes 2 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
      to [rank 2 [0:8, 0:2], rank 3 [2:6, 0:3]]
  bucket {
    transfer tensor 0 [0:4, 0:2] from 0 to 2 source old target new
    transfer tensor 0 [4:8, 0:2] from 1 to 2
    transfer tensor 0 [4:6, 2:3] from 1 to 3
    transfer tensor 0 [2:4, 2:3] from 0 to 1 target passing
  }
  bucket after 0 {
    transfer tensor 0 [2:4, 0:2] from 2 to 3 source new
    transfer tensor 0 [4:6, 0:2] from 2 to 3 source new
    transfer tensor 0 [2:4, 2:3] from 1 to 3 source passing
  }
}
// CHECK:      exec.switch_plan gradients of @a home @l {
// CHECK-NEXT: }
exec.switch_plan gradients of @a home @l {
}
// CHECK:      exec.step @step {
// CHECK-NEXT:   phase @e samples [2]
// CHECK-NEXT:   phase @p samples [0, 1]
// CHECK-NEXT: }
exec.step @step {
  phase @e samples [2]
  phase @p samples [0, 1]
}
