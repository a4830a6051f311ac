// RUN: dyna-opt %s -split-input-file -verify-diagnostics

// PLAN1: nothing of that name.
// expected-error @+1 {{expects @a to be an exec.graph}}
exec.plan @p of @a model 1 target_tokens 1 {
}

// -----

// PLAN6: two of them, even if they say the same.
exec.graph @a "dp=1,tp=1,pp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{states the strategy "dp=1,tp=1,pp=1,layers=1", which @a says}}
exec.plan @p of @a strategy "dp=1,tp=1,pp=1,layers=1" model 1 target_tokens 1 {
}

// -----

// PLAN2: the order.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
  }
  // expected-error @+1 {{expects micro-batches to stand before ranks}}
  micro_batch replica 0 []
}

// -----

// PLAN2: something else.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{is no part of an exec.plan, which lists micro-batches and ranks}}
  builtin.module {
  }
}

// -----

// PLAN3: targets.
// expected-error @+1 {{expects 'target_tokens' not to be negative, but got -1}}
exec.plan @p model 1 target_tokens -1 {
}

// -----

// PLAN3: lengths.
// expected-error @+1 {{expects 'lengths' not to be negative, but got -5}}
exec.plan @p model 1 target_tokens 1 lengths [3, -5] {
}

// -----

// PLAN4: no lengths.
// expected-error @+1 {{expects 'lengths' to list at least one sample}}
exec.plan @p model 1 target_tokens 1 lengths [] {
}

// -----

// MICROBATCH1: a length is missing.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects a begin and a length for each of 2 samples, but got 2 and 1}}
  "exec.micro_batch"() {replica = 0 : i32, samples = array<i64: 0, 1>, begins = array<i64: 0, 0>, lengths = array<i64: 4>} : () -> ()
}

// -----

// MICROBATCH1: a stream is missing.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects a stream and three numbers of keys for each of 2 samples}}
  "exec.micro_batch"() {replica = 0 : i32, samples = array<i64: 0, 1>, begins = array<i64: 0, 0>, lengths = array<i64: 4, 5>, streams = array<i64: 1>} : () -> ()
}

// -----

// MICROBATCH1: keys have two numbers.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects a stream and three numbers of keys for each of 1 samples}}
  "exec.micro_batch"() {replica = 0 : i32, samples = array<i64: 0>, begins = array<i64: 0>, lengths = array<i64: 4>, keys = array<i64: 0, 4>} : () -> ()
}

// -----

// MICROBATCH2: a stream of 33 bits.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects streams of 31 bits and keys that are not negative}}
  micro_batch replica 0 [sample 0 stream 4294967296 length 4]
}

// -----

// MICROBATCH2: keys end before they could begin.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects streams of 31 bits and keys that are not negative}}
  micro_batch replica 0 [sample 0 length 4 key_end -2]
}

// -----

// MICROBATCH3: the default has one form.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects streams and keys to be left out if all are the default}}
  "exec.micro_batch"() {replica = 0 : i32, samples = array<i64: 0>, begins = array<i64: 0>, lengths = array<i64: 4>, keys = array<i64: 0, 0, -1>} : () -> ()
}

// -----

// MICROBATCH3: so has stream 0.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects streams and keys to be left out if all are the default}}
  "exec.micro_batch"() {replica = 0 : i32, samples = array<i64: 0>, begins = array<i64: 0>, lengths = array<i64: 4>, streams = array<i64: 0>} : () -> ()
}

// -----

// MICROBATCH2: a negative replica.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects 'replica' not to be negative, but got -1}}
  micro_batch replica -1 []
}

// -----

// MICROBATCH2: a negative begin.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects samples, begins and lengths not to be negative, but got -4}}
  micro_batch replica 0 [sample 0 begin -4 length 4]
}

// -----

// PLAN5: a negative rank.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects rank 0 next, but got rank -1}}
  rank -1 dynamic_bytes 0 {
  }
}

// -----

// PLAN5: not in order.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
  }
  // expected-error @+1 {{expects rank 1 next, but got rank 2}}
  rank 2 dynamic_bytes 0 {
  }
}

// -----

// RANK1: negative bytes.
exec.plan @p model 1 target_tokens 1 {
  // expected-error @+1 {{expects 'dynamic_bytes' not to be negative, but got -64}}
  rank 0 dynamic_bytes -64 {
  }
}

// -----

// RANK2: something else.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{is no instruction: an exec.rank lists exec.do alone}}
    builtin.module {
    }
  }
}

// -----

// DO1: the parser says it at the word,
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{free has no 'next', expects layer, micro_batch}}
    do free layer 1 next 64
  }
}

// -----

// DO1: the verifier of ops that were made otherwise.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{combine_norm has no 'layer', expects nothing}}
    "exec.do"() {instruction = 22 : i32, layer = 3 : i32, places = array<i64>} : () -> ()
  }
}

// -----

// DO1: no such instruction.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects an instruction from 1 to 31, but got 99}}
    "exec.do"() {instruction = 99 : i32, places = array<i64>} : () -> ()
  }
}

// -----

// DO2: a negative bucket.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects 'bucket' not to be negative, but got -1}}
    do switch_wait phase 1 bucket -1
  }
}

// -----

// DO2: a negative parameter.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects 'parameter' not to be negative, but got -1}}
    do reduce_grads_start layer 0 parameter -1
  }
}

// -----

// DO1: a wait is for all that its layer has started.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{reduce_grads_wait has no 'parameter', expects layer}}
    do reduce_grads_wait layer 0 parameter 1
  }
}

// -----

// DO2: a negative layer.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects 'layer' not to be negative, but got -1}}
    do free layer -1
  }
}

// -----

// DO3: a negative place.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects 'workspace' to be a multiple of 64, but got -64}}
    do update layer 1 workspace -64
  }
}

// -----

// DO3: between the alignments.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects 'next' to be a multiple of 64, but got 100}}
    do forward layer 1 next 100
  }
}

// -----

// DO3: no place is said by no word.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects 'workspace' to be a multiple of 64, but got -1}}
    do update layer 1 workspace -1
  }
}

// -----

// DO3: a place too many.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects a place for each of 3 blocks that forward may take, but got 4}}
    "exec.do"() {instruction = 2 : i32, places = array<i64: 0, 0, 0, 0>} : () -> ()
  }
}

// -----

// DO3: a place of an op that was made otherwise is missing.
exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects a place for each of 3 blocks that forward may take, but got 1}}
    "exec.do"() {instruction = 2 : i32, places = array<i64: 0>} : () -> ()
  }
}

// -----

exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects an instruction, but got 'sleep'}}
    do sleep
  }
}

// -----

exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{'layer' is given twice}}
    do free layer 64 layer 128
  }
}

// -----

exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects a number of 32 bits, but got 4294967296}}
    do free layer 4294967296
  }
}

// -----

exec.plan @p model 1 target_tokens 1 {
  rank 0 dynamic_bytes 0 {
    // expected-error @+1 {{expects none, selective or full, but got 'all'}}
    do forward recompute all
  }
}

// -----

// DRAFT1: nothing in flight.
// expected-error @+1 {{expects 'in_flight' to be 1 to 2147483647, but got 0}}
exec.plan @p model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 0, tokens_per_micro_batch = 4, recompute = "none"> {
}

// -----

// DRAFT1: more than there are numbers for.
// expected-error @+1 {{expects 'in_flight' to be 1 to 2147483647, but got 2147483648}}
exec.plan @p model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 2147483648, tokens_per_micro_batch = 4, recompute = "none"> {
}

// -----

// DRAFT1: micro-batches of nothing.
// expected-error @+1 {{expects 'tokens_per_micro_batch' to be at least 1, but got 0}}
exec.plan @p model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 0, recompute = "none"> {
}

// -----

// DRAFT1: memory.
// expected-error @+1 {{expects 'rank_memory' not to be negative, but got -1}}
exec.plan @p model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 4, recompute = "none", rank_memory = -1> {
}

// -----

// DRAFT1: the longest sample.
// expected-error @+1 {{expects 'longest_sample' not to be negative, but got -2}}
exec.plan @p model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 4, recompute = "none", longest_sample = -2> {
}

// -----

// PLAN7: of which graph.
// expected-error @+1 {{is a draft, which says with 'of' what its graph is}}
exec.plan @p model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 4, recompute = "none"> {
}

// -----

// PLAN8: memory.
exec.graph @a "dp=1,tp=1,pp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
exec.plan @p of @a model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 4, recompute = "none"> {
  // expected-error @+1 {{of a draft expects 'dynamic_bytes' 0, but got 64}}
  rank 0 dynamic_bytes 64 {
  }
}

// -----

// PLAN8: a place.
exec.graph @a "dp=1,tp=1,pp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
exec.plan @p of @a model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 4, recompute = "none"> {
  rank 0 dynamic_bytes 0 {
      // expected-error @+1 {{of a draft expects no places, but got 64}}
    do load micro_batch 0 batch 64
  }
}

// -----

// PLAN8: a message.
exec.graph @a "dp=1,tp=1,pp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
exec.plan @p of @a model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 4, recompute = "none"> {
  rank 0 dynamic_bytes 0 {
    do load micro_batch 0
      // expected-error @+1 {{of a draft computes for a micro-batch: what ranks exchange and update comes later}}
    do send_act_start layer 1 micro_batch 0
  }
}

// -----

// PLAN8: an update.
exec.graph @a "dp=1,tp=1,pp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
exec.plan @p of @a model 1 target_tokens 1 draft <schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 4, recompute = "none"> {
  rank 0 dynamic_bytes 0 {
      // expected-error @+1 {{of a draft computes for a micro-batch: what ranks exchange and update comes later}}
    do update layer 0
  }
}
