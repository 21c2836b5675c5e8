"""Models in training through ``torch.compile``, beside eager PyTorch and Inductor."""
