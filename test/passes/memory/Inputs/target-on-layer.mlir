dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {dyna.target = "cuda"} {
  dyna.return %x : tensor<?x64xf32>
}
