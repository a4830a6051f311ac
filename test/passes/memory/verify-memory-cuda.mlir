// RUN: dyna-opt %s -split-input-file -verify-diagnostics --dyna-verify-memory

// A product that is told to take the gradient of gelu writes its result before it, or a kernel
// behind it, reads what that is of.

module attributes {dyna.target = "cuda"} {
  dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    dyna.return %x : tensor<?x64xf32>
  }
  dyna.function @described of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
    %h = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
    %m = dyna.linear_grad_input %x, %w {places = [#dyna.place<workspace, tq = 256>]} : tensor<?x64xf32>, tensor<64x64xf32>
    // expected-error @+1 {{writes to #dyna.place<workspace> while it still reads an operand in #dyna.place<workspace>}}
    %y = dyna.rows : tensor<?x64xf32> {
      %0 = dyna.gelu_grad %h, %m tanh : tensor<?x64xf32>
      dyna.yield %0 : tensor<?x64xf32>
    } {places = [#dyna.place<workspace>]}
    %c = dyna.linear %y, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
    dyna.return %c : tensor<?x64xf32>
  }
}

// -----

// A sweep behind the product may: it reads each element before it writes it.
module attributes {dyna.target = "cuda"} {
  dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    dyna.return %x : tensor<?x64xf32>
  }
  dyna.function @sweep of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
    %h = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
    %m = dyna.linear_grad_input %x, %w {places = [#dyna.place<workspace, tq = 256>]} : tensor<?x64xf32>, tensor<64x64xf32>
    %y = dyna.rows : tensor<?x64xf32> {
      %0 = dyna.silu_grad %h, %m : tensor<?x64xf32>
      dyna.yield %0 : tensor<?x64xf32>
    } {places = [#dyna.place<workspace>]}
    %c = dyna.linear %y, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
    dyna.return %c : tensor<?x64xf32>
  }
}

// -----

// Nor does it run while the product still reads its operand, which is free by then.
module attributes {dyna.target = "cuda"} {
  dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    dyna.return %x : tensor<?x64xf32>
  }
  dyna.function @behind of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) workspace <workspace, tq = 512> {
    %a = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x64xf32>, tensor<64x64xf32>
    %m = dyna.linear %a, %w {places = [#dyna.place<workspace, tq = 256>]} : tensor<?x64xf32>, tensor<64x64xf32>
    %y = dyna.rows : tensor<?x64xf32> {
      %0 = dyna.silu %m : tensor<?x64xf32>
      dyna.yield %0 : tensor<?x64xf32>
    } {places = [#dyna.place<workspace>]}
    %c = dyna.linear %y, %w {places = [#dyna.place<output>]} : tensor<?x64xf32>, tensor<64x64xf32>
    dyna.return %c : tensor<?x64xf32>
  }
}
