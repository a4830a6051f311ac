// RUN: dyna-opt %s -split-input-file -verify-diagnostics --dyna-verify-memory

// Hand-made places, each wrong in one way.

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {tiers = [#dyna.place<saved_input, tq = 256>, #dyna.place<products, tq = 256>, #dyna.place<elementwise>, #dyna.place<deferred>]} {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @no_places of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) {
  // expected-error @+1 {{has no places; run dyna-plan-memory first}}
  %m = dyna.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %m : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// The second product is written over a part of the first, which is still needed.
dyna.function @overwritten of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  %a = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-note @+1 {{overwritten here}}
  %b = dyna.linear %x, %w {places = [#dyna.place<workspace, tq = 128>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{reads a value in #dyna.place<workspace> that has been overwritten}}
  %c = dyna.linear %a, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %c : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// Apart for some numbers of tokens is not enough: 64 bytes are less than
// 256 bytes per token.
dyna.function @apart_for_some of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512, constant = 64> {
  %a = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{writes to #dyna.place<workspace, constant = 64> while it still reads an operand in #dyna.place<workspace>}}
  %b = dyna.linear %a, %w {places = [#dyna.place<workspace, constant = 64>]} : tensor<?x64xf32>, tensor<64x64xf32>
  %c = dyna.linear %b, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %c : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// A sweep in the epilogue of a product writes over what the product reads.
dyna.function @epilogue of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  %a = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
  %m = dyna.linear %a, %w {places = [#dyna.place<workspace, tq = 256>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{writes to #dyna.place<workspace> while it still reads an operand in #dyna.place<workspace>}}
  %y = dyna.rows : tensor<?x64xf32> {
    %0 = dyna.gelu %m tanh : tensor<?x64xf32>
    dyna.yield %0 : tensor<?x64xf32>
  } {places = [#dyna.place<workspace>]}
  %c = dyna.linear %y, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %c : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// A norm's result over its operand.
dyna.function @norm_in_place of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %g: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>) {
  %m = dyna.linear %x, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{writes to #dyna.place<output> while it still reads an operand in #dyna.place<output>}}
  %y = dyna.rows : tensor<?x64xf32> {
    %0 = dyna.rms_norm %m, %g {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32>
    dyna.yield %0 : tensor<?x64xf32>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @accumulator of @l as backward(%x: tensor<?x64xf32> in <saved_input>, %dy: tensor<?x64xf32> in <input>, %g: tensor<64x64xf32> in <gradient, index = 1>) -> (tensor<64x64xf32> in <gradient>) {
  // expected-error @-1 {{lies in a tier, but the layer @l does not state its four tiers}}
  %g1 = dyna.linear_grad_weight %dy, %x, %g {places = [#dyna.place<gradient>]} : tensor<?x64xf32>, tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %g1 : tensor<64x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {tiers = [#dyna.place<saved_input, tq = 256>, #dyna.place<products>, #dyna.place<elementwise>, #dyna.place<deferred>]} {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @accumulator of @l as backward(%x: tensor<?x64xf32> in <saved_input>, %dy: tensor<?x64xf32> in <input>, %g: tensor<64x64xf32> in <gradient, index = 1>) -> (tensor<64x64xf32> in <gradient>) {
  // expected-error @+1 {{expects to add in place, but the accumulator lies in #dyna.place<gradient, index = 1> and the result in #dyna.place<gradient>}}
  %g1 = dyna.linear_grad_weight %dy, %x, %g {places = [#dyna.place<gradient>]} : tensor<?x64xf32>, tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %g1 : tensor<64x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {tiers = [#dyna.place<saved_input, tq = 256>, #dyna.place<products, tq = 128>, #dyna.place<elementwise>, #dyna.place<deferred>]} {
  dyna.return %x : tensor<?x64xf32>
}
// expected-error @+1 {{ends at 256*Tq bytes of 'products', which has only 128*Tq}}
dyna.function @beyond_tier of @l as backward(%x: tensor<?x64xf32> in <products>) {
  dyna.return
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @beyond_workspace of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 128> {
  // expected-error @+1 {{ends at 256*Tq bytes of 'workspace', which has only 128*Tq}}
  %m = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %m : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @unaligned of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512, constant = 64> {
  // expected-error @+1 {{expects a constant offset that is a multiple of 64, but got #dyna.place<workspace, constant = 32>}}
  %m = dyna.linear %x, %w {places = [#dyna.place<workspace, constant = 32>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %m : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @odd of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  // expected-error @+1 {{expects even offsets per token, but got #dyna.place<workspace, tq = 3>}}
  %m = dyna.linear %x, %w {places = [#dyna.place<workspace, tq = 3>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %m : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @returned_from_elsewhere of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  %m = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{returns a value in #dyna.place<output>, but it lies in #dyna.place<workspace>}}
  dyna.return %m : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @argument of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %z: tensor<?x64xf32> in <input, index = 1>) -> (tensor<?x64xf32> in <output>) {
  // expected-error @+1 {{overwrites the argument in #dyna.place<input, index = 1>, which the function does not return}}
  %m = dyna.linear %x, %w {places = [#dyna.place<input, index = 1>]} : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.linear %m, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %y : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// The scratch of the partial sums is missing.
dyna.function @no_scratch of @l as backward(%dy: tensor<?x64xf32> in <input>, %g: tensor<64xf32> in <gradient>) -> (tensor<64xf32> in <gradient>) {
  // expected-error @+1 {{expects 2 places, but got 1}}
  %g1 = dyna.rows : tensor<64xf32> {
    %0 = dyna.bias_grad %dy, %g : tensor<?x64xf32>, tensor<64xf32>
    dyna.yield %0 : tensor<64xf32>
  } {places = [#dyna.place<gradient>]}
  dyna.return %g1 : tensor<64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// One collective of an exchange writes what another one reads.
dyna.function @exchange of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <output, index = 1>) workspace <workspace, tq = 512> {
  %a = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
  %b = dyna.linear %x, %w {places = [#dyna.place<workspace, tq = 256>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{writes to #dyna.place<workspace, tq = 256> while it still reads an operand in #dyna.place<workspace, tq = 256>}}
  %e:2 = dist.exchange : tensor<?x64xf32>, tensor<?x64xf32> {
    %0 = dist.all_reduce %a over <1 [tp] on <tp=2>> : tensor<?x64xf32>
    %1 = dist.all_reduce %b over <1 [tp] on <tp=2>> : tensor<?x64xf32>
    dist.yield %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
  } {places = [#dyna.place<workspace, tq = 256>, #dyna.place<output, index = 1>]}
  %c = dyna.linear %e#0, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %c, %e#1 : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// Two results of an exchange at one place.
dyna.function @exchange_results of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  // expected-error @+1 {{writes two results to overlapping places, #dyna.place<workspace> and #dyna.place<workspace, tq = 128>}}
  %e:2 = dist.exchange : tensor<?x64xf32>, tensor<?x64xf32> {
    %0 = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x64xf32> -> tensor<?x64xf32>
    %1 = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x64xf32> -> tensor<?x64xf32>
    dist.yield %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
  } {places = [#dyna.place<workspace>, #dyna.place<workspace, tq = 128>]}
  %c = dyna.linear %e#0, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %c : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// Nobody passes a third input: what lies behind the array would be taken for one.
dyna.function @no_such_entry of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) {
  // expected-error @+1 {{lies in #dyna.place<input, index = 2>, which the function neither takes nor gives}}
  %a = dyna.linear %x, %w {places = [#dyna.place<input, index = 2>]} : tensor<?x64xf32>, tensor<64x64xf32>
  %b = dyna.linear %a, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %b : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// Rows side by side must fit between two strides.
dyna.function @too_wide of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  // expected-error @+1 {{has 256 bytes a row, which do not fit into #dyna.place<workspace, column = 320, stride = 512>}}
  %a = dyna.linear %x, %w {places = [#dyna.place<workspace, column = 320, stride = 512>]} : tensor<?x64xf32>, tensor<64x64xf32>
  %c = dyna.linear %a, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %c : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// Columns of the same rows that overlap.
dyna.function @overlap of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  %a = dyna.linear %x, %w {places = [#dyna.place<workspace, stride = 512>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-note @+1 {{overwritten here}}
  %b = dyna.linear %x, %w {places = [#dyna.place<workspace, column = 192, stride = 512>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{reads a value in #dyna.place<workspace, stride = 512> that has been overwritten}}
  %c = dyna.linear %a, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %c : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// Another stride: the rows are not the same, no column helps.
dyna.function @other_rows of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 1024> {
  %a = dyna.linear %x, %w {places = [#dyna.place<workspace, stride = 512>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-note @+1 {{overwritten here}}
  %b = dyna.linear %x, %w {places = [#dyna.place<workspace, column = 256, stride = 1024>]} : tensor<?x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{reads a value in #dyna.place<workspace, stride = 512> that has been overwritten}}
  %c = dyna.linear %a, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %c : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// What strides are not made for.
dyna.function @no_stride of @l as evaluate(%w: tensor<9x64xf32> in <parameter>, %ids: tensor<?xi32> in <input>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  // expected-error @+1 {{takes no stride, but got #dyna.place<workspace, stride = 512>}}
  %a = dyna.embedding %ids, %w {places = [#dyna.place<workspace, stride = 512>]} : tensor<?xi32>, tensor<9x64xf32>
  dyna.return %a : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {tiers = [#dyna.place<saved_input>, #dyna.place<products>, #dyna.place<elementwise, tq = 256>, #dyna.place<deferred>]} {
  dyna.return %x : tensor<?x64xf32>
}
// A temporary in a tier, which is kept until backward.
dyna.function @kept of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) {
  // expected-error @+1 {{writes to #dyna.place<elementwise>, where the function returns nothing: a temporary lies in workspace}}
  %m = dyna.linear %x, %w {places = [#dyna.place<elementwise>]} : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.linear %m, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %y : tensor<?x64xf32>
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// expected-error @+1 {{expects the workspace #dyna.place<workspace, tq = 256>, which is what lies in it, but got #dyna.place<workspace, tq = 512>}}
dyna.function @wide of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
  %m = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.linear %m, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %y : tensor<?x64xf32>
}

// -----

// expected-error @+1 {{expects the tiers [#dyna.place<saved_input, tq = 256>, #dyna.place<products>, #dyna.place<elementwise>, #dyna.place<deferred>], which is what its functions keep, but got [#dyna.place<saved_input, tq = 256>, #dyna.place<products, tq = 256>}}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {tiers = [#dyna.place<saved_input, tq = 256>, #dyna.place<products, tq = 256>, #dyna.place<elementwise>, #dyna.place<deferred>]} {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @none of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) {
  %y = dyna.linear %x, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %y : tensor<?x64xf32>
}

// -----

dyna.layer @l[%w: tensor<64x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @sparse of @l as evaluate(%w: tensor<64x64xf32> in <parameter>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>) attributes {sparse = array<i64: 0>} {
  %y = dyna.linear %x, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %y : tensor<?x64xf32>
}
// expected-error @+1 {{expects 'sparse' to list the parameters that it lists in @sparse, a function of the same layer}}
dyna.function @dense of @l as forward(%w: tensor<64x64xf32> in <parameter>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>) {
  %y = dyna.linear %x, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %y : tensor<?x64xf32>
}

// -----

dyna.layer @l[%w: tensor<64x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// expected-error @+1 {{accepts sparse weights, but has no matrix products}}
dyna.function @update of @l as update(%w: tensor<64x64xf32> in <parameter>) attributes {sparse = array<i64: 0>} {
  dyna.return
}
