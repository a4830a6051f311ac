// RUN: dyna-opt %s -allow-unregistered-dialect -verify-diagnostics -dyna-report-layout-rules

// An op without a rule.
dyna.layer @unknown(%x: tensor<?x24xf32>) -> tensor<?x24xf32> {
  // expected-error @+1 {{has no layout rule}}
  %0 = "test.op"(%x) : (tensor<?x24xf32>) -> tensor<?x24xf32>
  dyna.return %0 : tensor<?x24xf32>
}
