"""KernelBench's problems through ``torch.compile``, beside eager PyTorch and Inductor."""
